"""What follows a text: the target's own tokens behind a prompt, what a decoder has written."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import torch

from attlas.errors import UsageError
from attlas.models.encoding.encode import Encoded, encode_ids
from attlas.models.encoding.inputs import Inputs, Stream
from attlas.models.encoding.request import Request
from attlas.models.encoding.target import Target
from attlas.models.encoding.token_ids import following_ids, token_ids
from attlas.models.facts.evaluation_mode import evaluation_mode
from attlas.models.facts.model_facts import ModelFacts

MOST_NEW_TOKENS = 64
Written = tuple[list[int], list[int], tuple[str, ...]]  # the prefix, the target's ids, notes


def as_inputs(subject: ModelFacts, found: Encoded, text: Any) -> Inputs:
    """An encoded text as a batch of one, with the arguments that the model takes."""
    known = subject.parameters
    arguments = {
        name: torch.tensor([values], device=subject.device)
        for name, values in found.arguments.items()
        if name in known
    }
    source = Stream("input_ids", 0, len(found.tokens))
    return Inputs(arguments, (found.tokens,), (text,), source, None, (found.notes,))


def with_chain(subject: ModelFacts, found: Encoded, text: Any, request: Request) -> Inputs:
    """A prompt for a language model, with all but the last of the target's tokens behind it."""
    if request.target is None or isinstance(request.target, Target):
        return as_inputs(subject, found, text)
    chain = following_ids(subject.tokenizer, found.tokens, request.target, found.plain)
    if len(chain) > 1:
        found = _append(subject, found, chain[:-1])
    return replace(as_inputs(subject, found, text), chains=(tuple(chain),))


def _append(subject: ModelFacts, found: Encoded, ids: Sequence[int]) -> Encoded:
    more = encode_ids(subject.tokenizer, ids, "target")
    arguments = {
        name: [*values, *more.arguments.get(name, values[-1:] * len(ids))]
        for name, values in found.arguments.items()
    }
    longer = Encoded(found.tokens.followed_by(more.tokens), arguments, found.notes)
    check_length(subject, "prompt and target", len(longer.tokens))
    return longer


def with_prefix(subject: ModelFacts, found: Encoded, text: Any, request: Request) -> Inputs:
    """A source for an encoder–decoder, with what its decoder has written so far."""
    inputs = as_inputs(subject, found, text)
    prefix, chain, notes = _prefix_and_chain(subject, inputs, request)
    written = encode_ids(subject.tokenizer, [*prefix, *chain[:-1]], "prefix")
    count = len(found.tokens)
    check_length(subject, "prefix and target", len(written.tokens))
    ids = torch.tensor([written.arguments["input_ids"]], device=subject.device)
    return replace(
        inputs,
        arguments={**inputs.arguments, "decoder_input_ids": ids},
        tokens=(found.tokens.followed_by(written.tokens),),
        prefix=Stream("decoder_input_ids", count, count + len(written.tokens)),
        notes=((*found.notes, *notes),),
        chains=(tuple(chain),),
    )


def _prefix_and_chain(subject: ModelFacts, inputs: Inputs, request: Request) -> Written:
    """What the decoder has written and the tokens to explain: the model's own if none are given."""
    tokenizer, asked = subject.tokenizer, request.target
    open_choice = asked is None or isinstance(asked, Target)
    chain = [] if open_choice else token_ids(tokenizer, asked, written=True)
    if request.prefix is not None or subject.task is None:
        prefix = token_ids(tokenizer, request.prefix, written=True) if request.prefix else []
        return [*first_tokens(subject), *prefix], chain, ()
    start, own = write(subject, inputs, MOST_NEW_TOKENS)
    shown = tokenizer.decode(own, skip_special_tokens=True)
    if asked is None:
        return start, own, (f"explains the model's own greedy output, {shown!r}",)
    note = (f"the prefix is the model's own output, {shown!r}",)
    if open_choice:
        return [*start, *own[:-1]], [], note
    place = _find_part(own, chain)
    if place is None:
        return start, chain, ("the prefix is empty: the model's own output lacks the target",)
    return [*start, *own[:place]], chain, note


def first_tokens(subject: ModelFacts) -> list[int]:
    """What a decoder starts from."""
    model: Any = subject.model
    settings = getattr(model, "generation_config", None)
    choices = (
        getattr(settings, "decoder_start_token_id", None),
        getattr(model.config, "decoder_start_token_id", None),
        subject.tokenizer.bos_token_id,
    )
    first = next((number for number in choices if number is not None), None)
    if first is None:
        raise UsageError(f"{subject.name} names no token for its decoder to start from")
    forced = getattr(settings, "forced_bos_token_id", None)
    return [first] if forced is None else [first, forced]


def write(subject: ModelFacts, inputs: Inputs, most: int) -> tuple[list[int], list[int]]:
    """What the model writes by itself: its start tokens, and the rest up to the end."""
    model: Any = subject.model
    start = first_tokens(subject) if subject.has_decoder else []
    fed = len(start) if subject.has_decoder else len(inputs.tokens[0])
    room = max(1, min(most, subject.max_tokens - fed))
    with evaluation_mode(model), torch.no_grad():
        written = model.generate(
            **inputs.arguments, do_sample=False, num_beams=1, max_new_tokens=room
        )[0].tolist()
    if subject.has_decoder and written[: len(start)] != start:
        start = written[:1]
    own = written[len(start) if subject.has_decoder else fed :]
    ends = {subject.tokenizer.eos_token_id, subject.tokenizer.pad_token_id}
    while len(own) > 1 and own[-1] in ends:
        own.pop()
    return start, own


def _find_part(whole: list[int], part: list[int]) -> int | None:
    places = range(len(whole) - len(part) + 1)
    return next((i for i in places if whole[i : i + len(part)] == part), None)


def check_length(subject: ModelFacts, what: str, count: int) -> None:
    """An error where that is more than the model takes."""
    if count > subject.max_tokens:
        raise UsageError(
            f"{what} are {count} tokens together and the model takes {subject.max_tokens}"
        )
