"""Reviews: short texts written for Attlas, with the words that carry the label marked."""

from pathlib import Path

from attlas.data.example import Example
from attlas.data.sets.rows import Record, Row, rows
from attlas.data.spans import place_words


def review_rows() -> list[Row]:
    """The reviews as they are written in the file."""
    return list(rows(Path(__file__).parent, "reviews"))


def review(record: Record) -> Example:
    """One review; `fields` has its kind: plain, negation, irony, contrast, and so on."""
    spans = tuple(place_words(record["text"], words) for words in record["marked"])
    return Example(record["text"], record["label"], spans, {"kind": record["kind"]})
