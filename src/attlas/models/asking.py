"""From texts to Questions: encode each, group those of equal length, find out what is explained."""

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import torch

from attlas.errors import UsageError
from attlas.models.borrow import borrowed
from attlas.models.encode import Encoded, encode, encode_ids
from attlas.models.inputs import Inputs, Stream, group_by_shape, stack
from attlas.models.question import Question
from attlas.models.resolve import Case, Request, resolve, token_ids
from attlas.models.target import QUANTITIES

if TYPE_CHECKING:
    from attlas.models.subject import Subject

SEGMENTS = ("text", "text_a", "text_b")
MOST_NEW_TOKENS = 64


def ask(subject: "Subject", texts: Sequence[Any], request: Request) -> list[Question]:
    """Questions about these texts, those of equal length together."""
    encoded = [subject.encode(text, request) for text in texts]
    groups = group_by_shape(encoded, 1 if not encoded else subject.rows_at_once(encoded[0]))
    return [_question(subject, group, stack([encoded[i] for i in group]), request) for group in groups]


def _question(
    subject: "Subject", order: Sequence[int], inputs: Inputs, request: Request
) -> Question:
    chains = inputs.chains or ((),) * len(inputs)
    with borrowed(subject.model), torch.no_grad():
        keep = -max(len(chains[0]), 1) if subject.predicts_next else None
        logits = subject.run(inputs.arguments, keep)
    resolved = [
        resolve(Case(subject, request, tokens, row, chain))
        for tokens, row, chain in zip(inputs.tokens, logits, chains, strict=True)
    ]
    notes = tuple(
        (*before, *after) for before, (_, _, after) in zip(inputs.notes, resolved, strict=True)
    )
    return Question(
        subject,
        replace(inputs, notes=notes),
        tuple(target for target, _, _ in resolved),
        tuple(prediction for _, prediction, _ in resolved),
        tuple(order),
        tuple(
            {of: float(target.score(row, of)) for of in QUANTITIES}
            for (target, _, _), row in zip(resolved, logits, strict=True)
        ),
    )


def encode_text(subject: "Subject", text: Any, request: Request) -> Inputs:
    """One text as a batch of one, with what the decoder has written or the target's own tokens."""
    tokenizer = subject.tokenizer
    name = subject.task.name if subject.task else ""
    if request.chat:
        text = _as_chat(tokenizer, text)
    names = ("text", "question", "context") if name == "question answering" else SEGMENTS
    if name == "question answering" and not isinstance(text, tuple):
        raise UsageError("this model answers questions: give a pair, (question, context)")
    limit = subject.max_tokens
    found = encode(tokenizer, text, names, limit, request.truncate, plain=request.chat)
    if name == "causal lm":
        return _with_chain(subject, found, text, request)
    if name == "sequence to sequence":
        return _with_prefix(subject, found, text, request)
    return _inputs(subject, found, text)


def _as_chat(tokenizer: Any, text: Any) -> str:
    if not isinstance(text, str):
        raise UsageError(f"a chat message is a string, not {type(text).__name__}")
    if not getattr(tokenizer, "chat_template", None):
        raise UsageError("this tokenizer has no chat template")
    message = [{"role": "user", "content": text}]
    written: str = tokenizer.apply_chat_template(
        message, tokenize=False, add_generation_prompt=True
    )
    return written


def _inputs(subject: "Subject", found: Encoded, text: Any) -> Inputs:
    known = subject.parameters
    arguments = {
        name: torch.tensor([values], device=subject.device)
        for name, values in found.arguments.items()
        if name in known
    }
    source = Stream("input_ids", 0, len(found.tokens))
    return Inputs(arguments, (found.tokens,), (text,), source, None, (found.notes,))


def _with_chain(subject: "Subject", found: Encoded, text: Any, request: Request) -> Inputs:
    """A prompt for a language model, with all but the last of the target's tokens behind it."""
    if request.target is None or not isinstance(request.target, (str, int)):
        return _inputs(subject, found, text)
    chain = _continuation(subject.tokenizer, found, request.target)
    if len(chain) > 1:
        found = _append(subject, found, chain[:-1])
    return replace(_inputs(subject, found, text), chains=(tuple(chain),))


def _continuation(tokenizer: Any, found: Encoded, target: Any) -> list[int]:
    """The target's tokens as they follow the prompt, which may differ from those it has alone."""
    if isinstance(target, str) and "text" in found.tokens.sources:
        prompt = found.arguments["input_ids"]
        whole = tokenizer(
            found.tokens.sources["text"] + target, add_special_tokens=not found.plain
        )["input_ids"]
        if len(whole) > len(prompt) and whole[: len(prompt)] == prompt:
            return list(whole[len(prompt) :])
    return token_ids(tokenizer, target)


def _append(subject: "Subject", found: Encoded, ids: Sequence[int]) -> Encoded:
    more = encode_ids(subject.tokenizer, ids, "target")
    arguments = {
        name: [*values, *more.arguments.get(name, values[-1:] * len(ids))]
        for name, values in found.arguments.items()
    }
    longer = Encoded(found.tokens.followed_by(more.tokens), arguments, found.notes)
    if len(longer.tokens) > subject.max_tokens:
        raise UsageError(
            f"prompt and target are {len(longer.tokens)} tokens and the model takes "
            f"{subject.max_tokens}"
        )
    return longer


def _with_prefix(subject: "Subject", found: Encoded, text: Any, request: Request) -> Inputs:
    """A source for an encoder–decoder, with what its decoder has written so far."""
    inputs = _inputs(subject, found, text)
    prefix, chain, notes = _prefix_and_chain(subject, inputs, request)
    written = encode_ids(subject.tokenizer, [*prefix, *chain[:-1]], "prefix")
    count = len(found.tokens)
    ids = torch.tensor([written.arguments["input_ids"]], device=subject.device)
    return replace(
        inputs,
        arguments={**inputs.arguments, "decoder_input_ids": ids},
        tokens=(found.tokens.followed_by(written.tokens),),
        prefix=Stream("decoder_input_ids", count, count + len(written.tokens)),
        notes=((*found.notes, *notes),),
        chains=(tuple(chain),),
    )


def _prefix_and_chain(
    subject: "Subject", inputs: Inputs, request: Request
) -> tuple[list[int], list[int], tuple[str, ...]]:
    """What the decoder has written, and the tokens to explain: the model's own where none are given."""
    tokenizer = subject.tokenizer
    asked = request.target if isinstance(request.target, (str, int)) else None
    chain = [] if asked is None else _target_ids(tokenizer, asked)
    if request.prefix is not None:
        prefix = _target_ids(tokenizer, request.prefix) if request.prefix else []
        return [*_start(subject), *prefix], chain, ()
    start, own = _greedy(subject, inputs)
    shown = tokenizer.decode(own, skip_special_tokens=True)
    if asked is None:
        return start, own, (f"explains the model's own greedy output, {shown!r}",)
    place = _find_part(own, chain)
    if place is None:
        return start, chain, ("the prefix is empty: the model's own output lacks the target",)
    return [*start, *own[:place]], chain, (f"the prefix is the model's own output, {shown!r}",)


def _target_ids(tokenizer: Any, text: Any) -> list[int]:
    if not isinstance(text, str):
        return token_ids(tokenizer, text)
    ids: list[int] = tokenizer(text_target=text, add_special_tokens=False)["input_ids"]
    return ids


def _start(subject: "Subject") -> list[int]:
    model: Any = subject.model
    settings = model.generation_config
    first = settings.decoder_start_token_id
    first = first if first is not None else model.config.decoder_start_token_id
    first = first if first is not None else subject.tokenizer.bos_token_id
    if first is None:
        raise UsageError(f"{subject.name} names no token for its decoder to start from")
    forced = settings.forced_bos_token_id
    return [first] if forced is None else [first, forced]


def _greedy(subject: "Subject", inputs: Inputs) -> tuple[list[int], list[int]]:
    """What the model writes by itself: its start tokens, and the rest up to the end."""
    model: Any = subject.model
    with borrowed(model), torch.no_grad():
        written = model.generate(
            **inputs.arguments, do_sample=False, num_beams=1, max_new_tokens=MOST_NEW_TOKENS
        )[0].tolist()
    start = _start(subject)
    start = start if written[: len(start)] == start else written[:1]
    own = written[len(start) :]
    ends = {subject.tokenizer.eos_token_id, subject.tokenizer.pad_token_id}
    while len(own) > 1 and own[-1] in ends:
        own.pop()
    return start, own


def _find_part(whole: list[int], part: list[int]) -> int | None:
    places = range(len(whole) - len(part) + 1)
    return next((i for i in places if whole[i : i + len(part)] == part), None)
