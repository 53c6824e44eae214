"""Encoding a text: a string, a pair, a list of words or token ids become tokens with offsets."""

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from numbers import Integral
from typing import Any

from attlas.data.conversations import ALLOWED
from attlas.errors import TextTooLongError, UsageError
from attlas.models.encoding.token_ids import decode_with_offsets, offsets_by_decoding, spellings_of
from attlas.tokens import Span, Tokens

MOST_CHARACTERS = 10_000_000  # a tokenizer takes about 400 bytes for each
MOST_SHOWN = 60  # characters of what was cut
_HALF = re.compile("[\ud800-\udfff]")


@dataclass(frozen=True)
class Encoded:
    """Tokens, and the model's arguments for them as lists."""

    tokens: Tokens
    arguments: dict[str, list[int]]
    notes: tuple[str, ...] = ()
    written: str | None = None  # a chat, as its template writes it with all special tokens
    added: tuple[bool, ...] = ()  # which tokens the tokenizer or a template added to the text
    beside: Mapping[str, Any] = field(default_factory=dict)  # arguments that are not one per token
    pictures: Mapping[str, Any] = field(default_factory=dict)  # in the text, by segment
    before: Tokens | None = None  # the parts of a picture that cross-attention reads


@dataclass(frozen=True)
class Segments:
    """The segments of a text by name, and the spans of the words if the user gave a list."""

    sources: dict[str, str]
    words: dict[str, tuple[Span, ...]] = field(default_factory=dict)


def encode(
    tokenizer: Any,
    text: Any,
    names: Sequence[str],
    limit: int,
    truncate: bool = False,
) -> Encoded:
    """Tokenize a text; raises if it is longer than `limit` and `truncate` is false.

    `names` are the names of the segments: first that of a single text, then the two of a pair.
    """
    ids = _ids_of(text)
    if ids is None:
        found = _tokenize(tokenizer, split_segments(text, names))
    else:
        found = encode_ids(tokenizer, ids, names[0])
    return fit(found, limit, truncate)


def fit(found: Encoded, limit: int, truncate: bool) -> Encoded:
    """The text cut to `limit` tokens; raises if it is longer and `truncate` is false."""
    if len(found.tokens) <= limit:
        return found
    if not truncate:
        raise TextTooLongError(
            f"the text has {len(found.tokens)} tokens and the model takes {limit}: "
            "shorten it, or let it be cut (truncate=True, --truncate)"
        )
    return _cut(found, limit)


def split_segments(text: Any, names: Sequence[str]) -> Segments:
    """The segments of a text; raises for an empty text and for anything else than a text."""
    if isinstance(text, str):
        found = Segments({names[0]: text})
    elif isinstance(text, tuple) and len(text) == 2 and all(isinstance(t, str) for t in text):
        found = Segments({names[1]: text[0], names[2]: text[1]})
    elif isinstance(text, list) and text and all(isinstance(word, str) for word in text):
        found = Segments({names[0]: " ".join(text)}, {names[0]: _spans(text)})
    elif isinstance(text, Mapping) and "content" in text:  # a message that lacks its role
        raise UsageError(f"{ALLOWED}, not {dict(text)!r}")
    else:
        raise UsageError(
            "a text is a string, a pair (a tuple of two strings), a list of words or a list of "
            f"token ids, not {_describe(text)}"
        )
    for name, source in found.sources.items():
        if len(source) > MOST_CHARACTERS:
            raise TextTooLongError(
                f"the {name.replace('_', ' ')} has {len(source):,} characters, and at most "
                f"{MOST_CHARACTERS:,} are read: shorten it"
            )
        if not source.strip():
            raise UsageError(f"the {name.replace('_', ' ')} is empty")
        if _HALF.search(source):
            raise UsageError(
                f"the {name.replace('_', ' ')} contains half a character (a lone surrogate)"
            )
    return found


def encode_ids(tokenizer: Any, ids: Sequence[int], name: str) -> Encoded:
    """Encode token ids as they are; the text is what they decode to, when somebody looks at it."""
    added, own, spellings = (False,) * len(ids), tuple(ids), spellings_of(tokenizer, ids)
    special = mark_special(tokenizer, ids, added)
    tokens = Tokens.found_later(
        special,
        name,
        lambda: tuple(map(spellings.__getitem__, own)),
        partial(decode_with_offsets, tokenizer, own, special),
    )
    return Encoded(tokens, {"input_ids": list(ids), "attention_mask": [1] * len(ids)}, added=added)


def encode_all(
    tokenizer: Any, texts: Sequence[Any], names: Sequence[str], limit: int, truncate: Sequence[bool]
) -> list[Encoded]:
    """Encode strings, or pairs of strings, by one call of a fast tokenizer; each as `encode` does.

    `truncate` says of each whether it may be cut.
    """
    each = [split_segments(text, names) for text in texts]
    columns = zip(*(one.sources.values() for one in each), strict=True)
    found = _call(tokenizer, *map(list, columns))
    vocabulary = Vocabulary.of(tokenizer, {number for ids in found["input_ids"] for number in ids})
    rows = [dict(zip(found, row, strict=True)) for row in zip(*found.values(), strict=True)]
    return [
        fit(_encoded(vocabulary, own, row, found, number), limit, cut)
        for number, (own, row, cut) in enumerate(zip(each, rows, truncate, strict=True))
    ]


def _tokenize(tokenizer: Any, texts: Segments) -> Encoded:
    found = _call(tokenizer, *texts.sources.values())
    vocabulary = Vocabulary.of(tokenizer, set(found["input_ids"]))
    return _encoded(vocabulary, texts, dict(found), found, 0)


def _call(tokenizer: Any, *texts: str | list[str]) -> Any:
    return tokenizer(
        *texts, return_special_tokens_mask=True, return_offsets_mapping=tokenizer.is_fast
    )


@dataclass(frozen=True)
class Vocabulary:
    """What is asked of a tokenizer once for many texts."""

    tokenizer: Any
    special: frozenset[int]
    names: Mapping[int, str]  # of the ids that occur

    @classmethod
    def of(cls, tokenizer: Any, ids: Collection[int]) -> "Vocabulary":
        """The vocabulary of texts with these ids."""
        numbers = list(ids)
        names = dict(zip(numbers, tokenizer.convert_ids_to_tokens(numbers), strict=True))
        return cls(tokenizer, _special_ids(tokenizer), names)


def _encoded(
    vocabulary: Vocabulary, texts: Segments, arguments: dict[str, Any], found: Any, row: int
) -> Encoded:
    """One text as the tokenizer gave it: `arguments`, the row of this number of what it found."""
    tokenizer, ids = vocabulary.tokenizer, arguments["input_ids"]
    added = tuple(map(bool, arguments.pop("special_tokens_mask")))
    if len(added) != len(ids):  # a slow tokenizer that does not know what it adds
        added = _added(tokenizer, ids, *texts.sources.values())
    special = _marked(vocabulary.special, ids, added)
    if all(special):
        raise UsageError("the tokenizer leaves nothing of the text")
    segments = _segments(found, row, added, list(texts.sources))
    offsets = arguments.pop("offset_mapping", None)
    if offsets is None:
        offsets = offsets_by_decoding(tokenizer, ids, special, "".join(texts.sources.values()))
    spans = tuple([None if mark else span for span, mark in zip(offsets, special, strict=True)])
    names = tuple(map(vocabulary.names.__getitem__, ids))
    tokens = Tokens(names, spans, special, segments, texts.sources, texts.words)
    return Encoded(tokens, arguments, added=added)


def _added(tokenizer: Any, ids: Sequence[int], *texts: str) -> tuple[bool, ...]:
    """Which tokens stand before, between and behind those of the texts alone."""
    added, start = [True] * len(ids), 0
    for text in texts:
        own = tokenizer(text, add_special_tokens=False)["input_ids"]
        places = range(start, len(ids) - len(own) + 1)
        start = next((i for i in places if list(ids[i : i + len(own)]) == list(own)), start)
        added[start : start + len(own)] = [False] * len(own)
        start += len(own)
    return tuple(added)


def mark_special(tokenizer: Any, ids: Sequence[int], added: Sequence[bool]) -> tuple[bool, ...]:
    """Which tokens stand for no text: those that the tokenizer added, and special ones in it."""
    return _marked(_special_ids(tokenizer), ids, added)


def _marked(special: frozenset[int], ids: Sequence[int], added: Sequence[bool]) -> tuple[bool, ...]:
    if special.isdisjoint(ids):
        return tuple(added)
    return tuple([mark or number in special for number, mark in zip(ids, added, strict=True)])


def _special_ids(tokenizer: Any) -> frozenset[int]:
    """The ids of special tokens.

    The unknown token stands for a word, unless it has another role too, as in GPT-2.
    """
    names = tokenizer.special_tokens_map
    known = set(tokenizer.all_special_ids)
    roles = [text for name, text in names.items() if name not in ("unk_token", "pad_token")]
    if names.get("unk_token") not in roles:
        known.discard(tokenizer.unk_token_id)
    return frozenset(known)


def _segments(found: Any, row: int, added: Sequence[bool], names: list[str]) -> tuple[str, ...]:
    """The segment of each token; an added token belongs to the segment before it."""
    if len(names) == 1:
        return (names[0],) * len(added)
    if not found.encodings:
        raise UsageError("pairs of texts need a fast tokenizer")
    current, segments = names[0], []
    for number in found.sequence_ids(row):
        current = current if number is None else names[number]
        segments.append(current)
    return tuple(segments)


def _cut(found: Encoded, limit: int) -> Encoded:
    """Keep as much of the beginning as fits, with the added special tokens."""
    inside = [i for i, mark in enumerate(found.added) if not mark]
    room = limit - (len(found.added) - len(inside))
    segments = list(dict.fromkeys(found.tokens.segments[i] for i in inside))
    places = [[i for i in inside if found.tokens.segments[i] == name] for name in segments]
    if room < len(segments):
        raise TextTooLongError(f"the model takes {limit} tokens: too few for any of the text")
    shares = _share([len(each) for each in places], room)
    cut = {i for each, share in zip(places, shares, strict=True) for i in each[share:]}
    keep = [i for i in range(len(found.added)) if i not in cut]
    kept = found.tokens.select(keep)
    return replace(
        found,
        tokens=kept,
        arguments={name: [each[i] for i in keep] for name, each in found.arguments.items()},
        notes=(*found.notes, _what_was_cut(found.tokens, kept)),
        added=tuple(found.added[i] for i in keep),
    )


def _share(lengths: Sequence[int], room: int) -> list[int]:
    """How many tokens of each text are kept: the longest is cut until it equals the next."""
    shares = [0] * len(lengths)
    order = sorted(range(len(lengths)), key=lambda text: lengths[text])
    for left, text in zip(range(len(lengths), 0, -1), order, strict=True):
        shares[text] = min(lengths[text], room // left)
        room -= shares[text]
    return shares


def _what_was_cut(whole: Tokens, kept: Tokens) -> str:
    def reach(tokens: Tokens, segment: str) -> int:
        pairs = zip(tokens.segments, tokens.offsets, strict=True)
        return max((span[1] for name, span in pairs if name == segment and span), default=0)

    rest = [source[reach(kept, name) :].strip() for name, source in whole.sources.items()]
    shown = [f"{text[:MOST_SHOWN]!r}{'…' if text[MOST_SHOWN:] else ''}" for text in rest if text]
    without = f", without {' and '.join(shown)}" if shown else ""
    return f"cut from {len(whole)} to {len(kept)} tokens{without}"


def _spans(words: Sequence[str]) -> tuple[Span, ...]:
    spans, start = [], 0
    for word in words:
        spans.append((start, start + len(word)))
        start += len(word) + 1
    return tuple(spans)


def _ids_of(text: Any) -> list[int] | None:
    """The ids that a text was given as; None if it was not."""
    if isinstance(text, (str, bytes, bytearray, tuple)) or not isinstance(text, Sequence):
        return None
    kinds = set(map(type, text))  # few, however long the text is
    if not kinds or bool in kinds or not all(issubclass(each, Integral) for each in kinds):
        return None
    return list(text) if kinds == {int} else list(map(int, text))


def _describe(text: Any) -> str:
    if not isinstance(text, (tuple, list)):
        return type(text).__name__
    kinds = ", ".join(dict.fromkeys(type(each).__name__ for each in text))
    return f"a {type(text).__name__} of {len(text)}" + (f" ({kinds})" if kinds else "")
