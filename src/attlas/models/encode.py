"""From a text to tokens with their places: strings, pairs, lists of words, token ids."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from attlas.errors import TextTooLongError, UsageError
from attlas.tokens import Span, Tokens


@dataclass(frozen=True)
class Encoded:
    """Tokens with the arguments that bring them to the model, not yet tensors."""

    tokens: Tokens
    arguments: dict[str, list[int]]
    notes: tuple[str, ...] = ()
    plain: bool = False  # whether the text came with its special tokens, as a chat does


@dataclass(frozen=True)
class Parts:
    """A text taken apart: what goes to the tokenizer, by segment, and the words if they are given."""

    sources: dict[str, str]
    words: dict[str, tuple[Span, ...]] = field(default_factory=dict)


def encode(
    tokenizer: Any,
    text: Any,
    names: Sequence[str],
    limit: int,
    truncate: bool = False,
    plain: bool = False,
) -> Encoded:
    """Tokenize a text whole; an error where it is too long, unless it may be cut.

    `names` are what the segments of a text and of a pair are called: one name, then two. A `plain`
    text holds its special tokens already.
    """
    if _are_ids(text):
        return _fit(encode_ids(tokenizer, text, names[0]), limit, truncate, None)
    parts = take_apart(text, names)
    found = _tokenize(tokenizer, parts, None, plain)
    if len(found.tokens) > limit and truncate:
        cut = _tokenize(tokenizer, parts, limit, plain)
        return replace(cut, notes=(_what_was_cut(found.tokens, cut.tokens),))
    return _fit(found, limit, truncate, text)


def take_apart(text: Any, names: Sequence[str]) -> Parts:
    """The segments of a text; an error for anything that is no text, or an empty one."""
    if isinstance(text, str):
        parts = Parts({names[0]: text})
    elif isinstance(text, tuple) and len(text) == 2 and all(isinstance(t, str) for t in text):
        parts = Parts({names[1]: text[0], names[2]: text[1]})
    elif isinstance(text, list) and text and all(isinstance(word, str) for word in text):
        parts = Parts({names[0]: " ".join(text)}, {names[0]: _spans(text)})
    else:
        raise UsageError(
            "a text is a string, a pair (a tuple of two strings), a list of words or a list of "
            f"token ids, not {type(text).__name__}"
        )
    for name, source in parts.sources.items():
        if not source.strip():
            raise UsageError(f"the {name.replace('_', ' ')} is empty")
        if any("\ud800" <= sign <= "\udfff" for sign in source):
            raise UsageError(f"the {name.replace('_', ' ')} has half a character (a lone surrogate)")
    return parts


def encode_ids(tokenizer: Any, ids: Sequence[int], name: str) -> Encoded:
    """Token ids as they are; the text is what they decode to, piece by piece."""
    size = len(tokenizer)
    wrong = [number for number in ids if not 0 <= number < size]
    if wrong:
        raise UsageError(f"unknown token id {wrong[0]}: this tokenizer has 0 to {size - 1}")
    special = _special(tokenizer, ids, [0] * len(ids))
    text, offsets = _decode_with_offsets(tokenizer, ids, special)
    texts = tuple(tokenizer.convert_ids_to_tokens(list(ids)))
    tokens = Tokens(texts, offsets, special, (name,) * len(ids), {name: text})
    return Encoded(tokens, {"input_ids": list(ids), "attention_mask": [1] * len(ids)})


def _tokenize(tokenizer: Any, parts: Parts, limit: int | None, plain: bool) -> Encoded:
    found = tokenizer(
        *parts.sources.values(),
        add_special_tokens=not plain,
        return_special_tokens_mask=True,
        return_offsets_mapping=tokenizer.is_fast,
        truncation=limit is not None,
        **({"max_length": limit} if limit is not None else {}),
    )
    arguments = dict(found)
    ids = arguments["input_ids"]
    special = _special(tokenizer, ids, arguments.pop("special_tokens_mask"))
    segments = _segments(found, special, list(parts.sources))
    offsets = arguments.pop("offset_mapping", None)
    if offsets is None:
        offsets = _offsets_by_decoding(tokenizer, ids, special, "".join(parts.sources.values()))
    spans = tuple(
        None if mark or span is None else (int(span[0]), int(span[1]))
        for span, mark in zip(offsets, special, strict=True)
    )
    texts = tuple(tokenizer.convert_ids_to_tokens(ids))
    tokens = Tokens(texts, spans, special, segments, parts.sources, parts.words)
    if all(special):
        raise UsageError("nothing is left of the text once it is tokenized")
    return Encoded(tokens, arguments, plain=plain)


def _special(tokenizer: Any, ids: Sequence[int], added: Sequence[int]) -> tuple[bool, ...]:
    """Which tokens stand for no text: those the tokenizer added, and special ones in the text."""
    known = set(tokenizer.all_special_ids) - {tokenizer.unk_token_id}
    return tuple(bool(mark) or number in known for number, mark in zip(ids, added, strict=True))


def _segments(found: Any, special: Sequence[bool], names: list[str]) -> tuple[str, ...]:
    """The segment of each token; a special token belongs to the one before it."""
    if len(names) == 1:
        return (names[0],) * len(special)
    if not found.encodings:
        raise UsageError("pairs of texts need a fast tokenizer, and this one is not")
    current, segments = names[0], []
    for number in found.sequence_ids(0):
        current = current if number is None else names[number]
        segments.append(current)
    return tuple(segments)


def _offsets_by_decoding(
    tokenizer: Any, ids: Sequence[int], special: Sequence[bool], text: str
) -> tuple[Span | None, ...]:
    """Offsets for a tokenizer that gives none; None where its text is not the one it was given."""
    decoded, spans = _decode_with_offsets(tokenizer, ids, special)
    shift = text.find(decoded) if decoded else -1
    if shift < 0:
        return (None,) * len(ids)
    return tuple(span and (span[0] + shift, span[1] + shift) for span in spans)


def _decode_with_offsets(
    tokenizer: Any, ids: Sequence[int], special: Sequence[bool]
) -> tuple[str, tuple[Span | None, ...]]:
    """The text that the ids stand for, and where in it each token is.

    The text is decoded one token longer at a time. Pieces of one character, which mean nothing
    until the last of them is there, share its span.
    """
    content = [number for number, mark in zip(ids, special, strict=True) if not mark]

    def decode(count: int) -> str:
        text: str = tokenizer.decode(content[:count], clean_up_tokenization_spaces=False)
        return text

    whole, spans, start, waiting = decode(len(content)), [], 0, 0
    for count in range(1, len(content) + 1):
        waiting += 1
        part = decode(count)
        if whole.startswith(part) or count == len(content):
            end = max(start, len(part))
            spans += [(start, end)] * waiting
            start, waiting = end, 0
    found = iter(spans)
    return whole, tuple(None if mark else next(found) for mark in special)


def _fit(found: Encoded, limit: int, truncate: bool, text: Any) -> Encoded:
    if len(found.tokens) <= limit:
        return found
    if not truncate or text is not None:
        raise TextTooLongError(
            f"the text has {len(found.tokens)} tokens and the model takes {limit}: "
            "shorten it, or ask for it to be cut (truncate=True, --truncate)"
        )
    keep = list(range(limit))
    arguments = {name: values[:limit] for name, values in found.arguments.items()}
    note = f"cut: {len(found.tokens) - limit} token ids after the first {limit}"
    return Encoded(found.tokens.select(keep), arguments, (note,))


def _what_was_cut(whole: Tokens, kept: Tokens) -> str:
    def reach(tokens: Tokens, segment: str) -> int:
        pairs = zip(tokens.segments, tokens.offsets, strict=True)
        return max((span[1] for name, span in pairs if name == segment and span), default=0)

    cut = [
        f"{source[reach(kept, name) :].strip()[:60]!r}…"
        for name, source in whole.sources.items()
        if reach(kept, name) < reach(whole, name)
    ]
    return f"cut from {len(whole)} to {len(kept)} tokens, without {' and '.join(cut)}"


def _spans(words: Sequence[str]) -> tuple[Span, ...]:
    spans, start = [], 0
    for word in words:
        spans.append((start, start + len(word)))
        start += len(word) + 1
    return tuple(spans)


def _are_ids(text: Any) -> bool:
    if isinstance(text, (str, tuple)) or not isinstance(text, Sequence) or not len(text):
        return False
    return all(isinstance(number, int) and not isinstance(number, bool) for number in text)
