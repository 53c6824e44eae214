"""Rows of a table as Examples: which columns are read, and what stands in their cells."""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from dataclasses import fields as fields_of
from decimal import Decimal
from typing import Any

import numpy as np

from attlas.data.conversations import Conversation, is_conversation
from attlas.data.example import Example, Record, Span
from attlas.data.spans import marked, place_words, words_of
from attlas.errors import UnknownNameError, UsageError

TEXTS = (
    "text", "sentence", "review", "review_text", "reviewtext", "content", "body", "comment",
    "comment_text", "tweet", "message", "document", "article", "post", "utterance", "headline",
    "description", "question", "query", "prompt", "input", "title", "messages", "conversation",
)  # fmt: skip
PAIRS = (
    ("text_a", "text_b"),
    ("sentence1", "sentence2"),
    ("premise", "hypothesis"),
    ("question1", "question2"),
    ("question", "sentence"),
)
LABELS = (
    "label", "labels", "gold_label", "class", "target", "sentiment", "stars", "star_rating",
    "rating", "category", "topic", "polarity", "y",
)  # fmt: skip
CLUSTERS = ("cluster", "group")
_WHOLE_NUMBER = re.compile(r"([+-]?\d+)\.0*")


class UnusableRow(Exception):
    """A row that makes no Example; the reason has the same words for all rows of its kind."""

    def __init__(self, reason: str, shown: Any = "") -> None:
        super().__init__(reason)
        self.shown = str(shown)


@dataclass(frozen=True)
class Columns:
    """The columns that are read; None where the table has no such column."""

    text: str
    pair: str | None = None
    label: str | None = None
    spans: str | None = None
    cluster: str | None = None
    tools: str | None = None

    def named(self) -> dict[str, str]:
        """Map what is read to its column, leaving out what the table does not have."""
        columns = {each.name: getattr(self, each.name) for each in fields_of(self)}
        return {name: column for name, column in columns.items() if column is not None}


def find_columns(
    available: Sequence[str],
    text: str | None = None,
    pair: str | None = None,
    label: str | None = None,
    spans: str | None = None,
) -> Columns:
    """Take the columns asked for, and find the others by their usual names; spans never."""
    for name in (text, pair, label, spans):
        if name is not None and name not in available:
            raise UnknownNameError("column", name, available)
    if pair is not None and text is None:
        raise UsageError(f"{pair!r} is the second text: name the first too (text=, --text)")
    rest = [name for name in available if name not in (text, pair, spans)]
    label = label or _first(rest, LABELS)
    others = [name for name in rest if name != label]
    if text is None:
        text, pair = _find_text(others)
    cluster = _first([name for name in others if name not in (text, pair)], CLUSTERS)
    tools = "tools" if text == "messages" and "tools" in others else None
    return Columns(text, pair, label, spans, cluster, tools)


def _find_text(available: Sequence[str]) -> tuple[str, str | None]:
    for first, second in PAIRS:
        pair = _first(available, [first]), _first(available, [second])
        if pair[0] is not None and pair[1] is not None:
            return pair[0], pair[1]
    only = available[0] if len(available) == 1 else None
    text = _first(available, TEXTS) or only
    if text is None:
        columns = ", ".join(available) or "none"
        raise UsageError(
            f"which column is the text? Name it (text=, --text); the columns are: {columns}"
        )
    return text, None


def _first(available: Iterable[str], usual: Sequence[str]) -> str | None:
    known: dict[str, str] = {}
    for name in available:
        known.setdefault(name.strip().lower(), name)
    known |= {name: name for name in available}  # of two, that which is spelled like this
    return next((known[name] for name in usual if name in known), None)


def read_row(content: Record | Example, columns: Mapping[str, str], place: int | str) -> Example:
    """Make the Example of a row; `fields` holds the place of the row and its cluster."""
    if isinstance(content, Example):
        _read_text(content.text)
        return content
    cells = {name: _plain(content.get(column)) for name, column in columns.items()}
    text = _read_text((cells["text"], cells["pair"]) if "pair" in cells else cells["text"])
    if cells.get("tools") and isinstance(text, list):
        text = _read_text({"messages": text, "tools": cells["tools"]})
    spans = _read_spans(cells.get("spans"), text)
    fields: dict[str, Any] = {"row": place}
    if (cluster := _read_label(cells.get("cluster"), "cluster")) is not None:
        fields["cluster"] = cluster
    return Example(text, _read_label(cells.get("label"), "label"), spans, fields)


def _read_text(value: Any) -> Any:
    if is_conversation(value):
        return _read_conversation(value)
    if isinstance(value, tuple) and len(value) == 2:
        return _read_single(value[0]), _read_single(value[1])
    return _read_single(value)


def _read_conversation(value: Any) -> Any:
    try:
        Conversation.of(value)
    except UsageError:
        raise UnusableRow("the messages cannot be read", value) from None
    _read_characters(json.dumps(value, ensure_ascii=False), "text")
    return value


def _read_single(value: Any) -> str:
    if _is_missing(value):
        raise UnusableRow("no text")
    if isinstance(value, bool) or not isinstance(value, (str, int, float)):
        raise UnusableRow(f"the text is of type {type(value).__name__}", value)
    return _read_characters(str(value), "text")


def _read_label(value: Any, what: str) -> str | None:
    """Read a label as text; a whole number loses its decimals, so 1.0 is 1."""
    if _is_missing(value):
        return None
    if not isinstance(value, (str, int, float, Decimal)):
        raise UnusableRow(f"the {what} is of type {type(value).__name__}", value)
    label = _read_characters(str(value), what)
    whole = _WHOLE_NUMBER.fullmatch(label)
    return whole[1] if whole else label


def _read_characters(text: str, what: str) -> str:
    """Refuse lone surrogates, which JSON can spell and UTF-8 cannot."""
    try:
        text.encode()
    except UnicodeEncodeError:
        raise UnusableRow(f"the {what} has characters that do not exist", text) from None
    return text


def _read_spans(value: Any, text: Any) -> tuple[Span, ...]:
    if _is_missing(value):
        return ()
    if is_conversation(text):
        raise UnusableRow("spans are for a text or a pair of texts, not for messages", value)
    within = text if isinstance(text, str) else text[1]
    try:
        return _spans(_marks(value), within)
    except (ValueError, TypeError, KeyError, IndexError) as error:
        raise UnusableRow("the spans cannot be read", f"{error}: {value}") from error


def _marks(value: Any) -> list[Any]:
    """Return a list; a string is JSON if it starts with a bracket, else one marked phrase."""
    if isinstance(value, str):
        value = json.loads(value) if value.lstrip().startswith("[") else [value]
    if not isinstance(value, (list, tuple)):
        raise TypeError("spans are a list")
    return list(value)


def _spans(marks: list[Any], text: str) -> tuple[Span, ...]:
    """Read places `[start, end]`, words of the text, or a 0 or 1 for each of its words."""
    if marks and all(isinstance(each, (int, bool)) for each in marks):
        return marked(words_of(text), marks)
    return tuple(sorted({_span(each, text) for each in marks}))


def _span(mark: Any, text: str) -> Span:
    if isinstance(mark, (str, dict)):
        return place_words(text, mark)
    start, end = map(int, mark)
    if not 0 <= start < end <= len(text):
        raise ValueError(f"{start} to {end} is not within the {len(text)} characters")
    return start, end


def _plain(value: Any) -> Any:
    return value.tolist() if isinstance(value, (np.generic, np.ndarray)) else value


def _is_missing(value: Any) -> bool:
    if isinstance(value, str):
        return not value.strip()
    return value is None or (isinstance(value, float) and value != value)
