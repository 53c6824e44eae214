"""Texts with a continuation: target tokens behind a prompt, or what a decoder has written."""

from collections.abc import Collection, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any, cast

import numpy as np
import torch
from torch import nn
from transformers import GenerationMixin

from attlas.errors import UsageError
from attlas.models.encoding.encode import Encoded, encode_ids
from attlas.models.encoding.inputs import Inputs, Stream
from attlas.models.encoding.request import Request
from attlas.models.encoding.target import Target
from attlas.models.encoding.token_ids import following_ids, text_ids, token_ids
from attlas.models.facts.evaluation_mode import evaluation_mode
from attlas.models.facts.model_facts import MASK, ModelFacts

MOST_NEW_TOKENS = 64
PrefixAndChain = tuple[list[int], list[int], tuple[str, ...]]  # with notes


def as_inputs(subject: ModelFacts, encoded: Encoded, text: Any) -> Inputs:
    """Turn an encoded text into a batch of one with the arguments that the model takes."""
    inputs = as_batch(subject, [encoded], [text])
    if not encoded.beside and encoded.before is None:
        return inputs
    beside = {name: value for name, value in encoded.beside.items() if name in subject.parameters}
    before, prefix, tokens = encoded.before or encoded.tokens, None, encoded.tokens
    if encoded.before is not None:
        tokens = before.followed_by(tokens)
        prefix = Stream("input_ids", len(before), len(tokens))
    return replace(
        inputs,
        arguments={**inputs.arguments, **beside},
        tokens=(tokens,),
        source=replace(inputs.source, stop=len(before)),
        prefix=prefix,
        pictures=(encoded.pictures,) if encoded.beside else (),
    )


def as_batch(subject: ModelFacts, encoded: Sequence[Encoded], texts: Sequence[Any]) -> Inputs:
    """The batch of texts of equal length that consist of tokens alone."""
    if not any(each.beside for each in encoded):  # a model may replace the tokens for pictures
        ids = [each.arguments["input_ids"] for each in encoded if "input_ids" in each.arguments]
        check_vocabulary(subject, [max(each, default=0) for each in ids])
    device, parameters = subject.device, subject.parameters
    arguments = {
        name: _batch([each.arguments[name] for each in encoded], device)
        for name in encoded[0].arguments
        if name in parameters
    }
    brings = subject.sound_argument or subject.picture_argument or "input_ids"
    return Inputs(
        arguments,
        tuple(each.tokens for each in encoded),
        tuple(texts),
        Stream(brings, 0, len(encoded[0].tokens)),
        notes=tuple(each.notes for each in encoded),
    )


def _batch(rows: Sequence[Any], device: torch.device) -> torch.Tensor:
    """Rows of numbers on a device; numpy reads long lists much faster than torch."""
    array = np.array(rows)
    if array.dtype != np.int64:
        return torch.tensor(rows, device=device)
    return torch.from_numpy(array).to(device)


def names_tokens(request: Request) -> bool:
    """Whether the target is one or more tokens, which a language model is made to write."""
    return request.target is not None and not isinstance(request.target, (Target, list))


def with_chain(subject: ModelFacts, encoded: Encoded, text: Any, request: Request) -> Inputs:
    """The inputs of a language model: the prompt, then all target tokens but the last."""
    if not names_tokens(request):
        return as_inputs(subject, encoded, text)
    chain = following_ids(subject.tokenizer, encoded.tokens, request.target, encoded.written)
    if len(chain) > 1:
        encoded = _append(subject, encoded, chain[:-1])
    return replace(as_inputs(subject, encoded, text), chains=(tuple(chain),))


def _append(subject: ModelFacts, encoded: Encoded, ids: Sequence[int]) -> Encoded:
    more = encode_ids(subject.tokenizer, ids, "target")
    arguments = {
        name: [*values, *more.arguments.get(name, _types(name, values) * len(ids))]
        for name, values in encoded.arguments.items()
    }
    tokens = encoded.tokens.followed_by(more.tokens)
    longer = replace(encoded, tokens=tokens, arguments=arguments)
    check_length(subject, "prompt and target", len(longer.tokens))
    return longer


def _types(name: str, values: Sequence[int]) -> list[int]:
    """The segment of tokens that follow; those of a picture do not."""
    return [0] if name in ("mm_token_type_ids", MASK) else list(values[-1:])


def with_prefix(subject: ModelFacts, encoded: Encoded, text: Any, request: Request) -> Inputs:
    """The inputs of an encoder–decoder: the source, and what the decoder has written so far."""
    inputs = as_inputs(subject, encoded, text)
    prefix, chain, notes = _prefix_and_chain(subject, inputs, request)
    written = encode_ids(subject.tokenizer, [*prefix, *chain[:-1]], "prefix")
    count = len(encoded.tokens)
    check_length(subject, "prefix and target", len(written.tokens))
    check_vocabulary(subject, written.arguments["input_ids"])
    ids = torch.tensor([written.arguments["input_ids"]], device=subject.device)
    return replace(
        inputs,
        arguments={**inputs.arguments, "decoder_input_ids": ids},
        tokens=(encoded.tokens.followed_by(written.tokens),),
        prefix=Stream("decoder_input_ids", count, count + len(written.tokens)),
        notes=((*encoded.notes, *notes),),
        chains=(tuple(chain),),
    )


def _prefix_and_chain(subject: ModelFacts, inputs: Inputs, request: Request) -> PrefixAndChain:
    """What the decoder has written, and the tokens to explain; both may be the model's own."""
    tokenizer, target = subject.tokenizer, request.target
    no_tokens = not names_tokens(request)
    chain = [] if no_tokens else token_ids(tokenizer, target, written=True)
    if request.prefix is not None or subject.task is None:
        prefix = text_ids(tokenizer, request.prefix, written=True) if request.prefix else []
        return [*first_tokens(subject), *prefix], chain, ()
    start, own = write(subject, inputs, MOST_NEW_TOKENS)
    shown = tokenizer.decode(own, skip_special_tokens=True)
    if target is None:
        return start, own, (f"explains the model's own greedy output, {shown!r}",)
    if isinstance(target, list):
        return start, [], ("the prefix is empty: the first token is explained",)
    note = (f"the prefix is the model's own output, {shown!r}",)
    if no_tokens:
        return [*start, *own[:-1]], [], note
    place = _find_sublist(own, chain)
    if place is None:
        return start, chain, ("the prefix is empty: the model's own output lacks the target",)
    return [*start, *own[:place]], chain, note


def first_tokens(subject: ModelFacts) -> list[int]:
    """The token ids that a decoder starts from."""
    model: Any = subject.model
    settings = getattr(model, "generation_config", None)
    choices = (
        getattr(settings, "decoder_start_token_id", None),
        getattr(model.config, "decoder_start_token_id", None),
        subject.tokenizer.bos_token_id,
    )
    first = next((number for number in choices if number is not None), None)
    if first is None:
        raise UsageError(f"{subject.name} does not say which token its decoder starts from")
    forced = getattr(settings, "forced_bos_token_id", None)
    return [first] if forced is None else [first, forced]


def write(subject: ModelFacts, inputs: Inputs, most: int) -> tuple[list[int], list[int]]:
    """Let the model write greedily: its start tokens, and up to `most` tokens behind them."""
    model: Any = subject.model
    start = first_tokens(subject) if subject.has_decoder else []
    prompt = inputs.prefix or inputs.source
    fed = len(start) if subject.has_decoder else len(prompt.positions)
    room = max(1, min(most, subject.max_tokens - fed))
    given, generate = dict(inputs.arguments), type(model).generate
    if subject.sound_argument is not None:  # their own method leaves out what they start from
        given["decoder_input_ids"] = torch.tensor([start], device=subject.device)
        generate = GenerationMixin.generate
    with evaluation_mode(model), torch.no_grad():
        written = generate(model, **given, do_sample=False, num_beams=1, max_new_tokens=room)
    written = written[0].tolist()
    if subject.has_decoder and written[: len(start)] != start:
        start = written[:1]
    own = written[len(start) if subject.has_decoder else fed :]
    ends = {subject.tokenizer.eos_token_id, subject.tokenizer.pad_token_id}
    while len(own) > 1 and own[-1] in ends:
        own.pop()
    return start, own


def _find_sublist(whole: list[int], piece: list[int]) -> int | None:
    places = range(len(whole) - len(piece) + 1)
    return next((i for i in places if whole[i : i + len(piece)] == piece), None)


def check_vocabulary(subject: ModelFacts, ids: Collection[int]) -> None:
    """Raise if the model has no vector for one of these tokens."""
    table, model = None, cast(Any, subject.model)
    with suppress(NotImplementedError, AttributeError):  # a model without a table of vectors
        table = model.get_input_embeddings()
    if not isinstance(table, nn.Embedding) or max(ids, default=0) < table.num_embeddings:
        return
    number = next(each for each in ids if each >= table.num_embeddings)
    raise UsageError(
        f"the token {subject.tokenizer.convert_ids_to_tokens(number)!r} has the id {number}, but "
        f"{subject.name} has vectors for 0 to {table.num_embeddings - 1}: its tokenizer has more "
        "tokens than the model (model.resize_token_embeddings)"
    )


def check_length(subject: ModelFacts, what: str, count: int) -> None:
    """Raise if this many tokens are more than the model takes."""
    if count > subject.max_tokens:
        raise UsageError(
            f"{what} have {count} tokens together, but the model takes {subject.max_tokens}"
        )
