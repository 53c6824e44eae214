"""Where tokens stand in the text they decode to: for ids, and for tokenizers without offsets."""

from collections.abc import Sequence
from typing import Any

from attlas.tokens import Span

# Some decoders treat the first token in their own way, so tokens are decoded behind a few others.
TOKENS_BEFORE = 8


def decode_with_offsets(
    tokenizer: Any, ids: Sequence[int], special: Sequence[bool]
) -> tuple[str, tuple[Span | None, ...]]:
    """The text that the ids stand for, and where in it each token is; special ones are nowhere."""
    content = [number for number, mark in zip(ids, special, strict=True) if not mark]
    whole = _decode(tokenizer, content)
    found = iter(_places(tokenizer, content, whole))
    return whole, tuple(None if mark else next(found) for mark in special)


def offsets_by_decoding(
    tokenizer: Any, ids: Sequence[int], special: Sequence[bool], text: str
) -> tuple[Span | None, ...]:
    """Offsets for a tokenizer that gives none; None where its text is not the one it was given."""
    decoded, spans = decode_with_offsets(tokenizer, ids, special)
    shift = text.find(decoded) if decoded else -1
    if shift < 0:
        return (None,) * len(ids)
    return tuple(span and (span[0] + shift, span[1] + shift) for span in spans)


def _places(tokenizer: Any, content: Sequence[int], whole: str) -> list[Span]:
    """The place of each token in the whole text, one token more at a time.

    Pieces of one character, which mean nothing until the last of them is there, share its span.
    """
    spans: list[Span] = []
    start, settled = 0, [0]
    for count in range(1, len(content) + 1):
        first, done = settled[-TOKENS_BEFORE:][0], settled[-1]
        before = _decode(tokenizer, content[first:done])
        now = _decode(tokenizer, content[first:count])
        more = now[len(before) :] if now.startswith(before) else ""
        if count == len(content):
            end = len(whole)
        elif more and whole.startswith(more, start):
            end = start + len(more)
        else:
            continue
        spans += [(start, end)] * (count - done)
        settled.append(count)
        start = end
    return spans


def _decode(tokenizer: Any, ids: Sequence[int]) -> str:
    text: str = tokenizer.decode(list(ids), clean_up_tokenization_spaces=False)
    return text
