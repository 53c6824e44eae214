"""Reviews: short texts written for Attlas, with the words that carry the label marked."""

from collections.abc import Mapping
from pathlib import Path

from attlas.data.example import Example, Span
from attlas.data.rows import Record, Row, rows


def review_rows() -> list[Row]:
    """The reviews as they are written in the file."""
    return list(rows(Path(__file__).parent, "reviews"))


def review(record: Record) -> Example:
    """One review; `fields` has its kind: plain, negation, irony, contrast, and so on."""
    spans = tuple(_place(record["text"], words) for words in record["marked"])
    return Example(record["text"], record["label"], spans, {"kind": record["kind"]})


def _place(text: str, words: str | Mapping[str, object]) -> Span:
    if isinstance(words, str):
        if text.count(words) != 1:
            raise ValueError(f"{words!r} is there {text.count(words)} times: give its start")
        start, written = text.index(words), words
    else:
        start, written = int(str(words["start"])), str(words["text"])
    if not text.startswith(written, start):
        raise ValueError(f"{written!r} does not stand at {start}")
    return start, start + len(written)
