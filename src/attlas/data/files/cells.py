"""What stands in the cells of a row, as an Example, or why it cannot be used."""

import json
import re
from collections.abc import Mapping
from typing import Any

import numpy as np

from attlas.data.example import Example, Span, Text
from attlas.data.sets.rows import Record
from attlas.data.spans import marked, place_words, words_of

_WHOLE = re.compile(r"([+-]?\d+)\.0*")


class UnusableRow(Exception):
    """A row that makes no Example: why, in words that are the same for all such rows."""

    def __init__(self, reason: str, shown: Any = "") -> None:
        super().__init__(reason)
        self.shown = str(shown)


def read_row(content: Record | Example, columns: Mapping[str, str], place: int | str) -> Example:
    """The Example of a row; its `fields` say which row it is, and of which cluster.

    `columns` has the column of everything that is read.
    """
    if isinstance(content, Example):
        _read_text(content.text)
        return content
    cells = {name: _plain(content.get(column)) for name, column in columns.items()}
    text = _read_text((cells["text"], cells["pair"]) if "pair" in cells else cells["text"])
    spans = _read_spans(cells.get("spans"), text)
    fields: dict[str, Any] = {"row": place}
    if (cluster := _read_label(cells.get("cluster"), "cluster")) is not None:
        fields["cluster"] = cluster
    return Example(text, _read_label(cells.get("label"), "label"), spans, fields)


def _read_text(value: Any) -> Text:
    if isinstance(value, tuple) and len(value) == 2:
        return _read_part(value[0]), _read_part(value[1])
    return _read_part(value)


def _read_part(value: Any) -> str:
    if _is_missing(value):
        raise UnusableRow("no text")
    if isinstance(value, bool) or not isinstance(value, (str, int, float)):
        raise UnusableRow(f"the text is of type {type(value).__name__}", value)
    return _read_characters(str(value), "text")


def _read_label(value: Any, what: str) -> str | None:
    """A label as text: numbers as they are counted, 1 for 1.0."""
    if _is_missing(value):
        return None
    if not isinstance(value, (str, int, float)):
        raise UnusableRow(f"the {what} is of type {type(value).__name__}", value)
    label = _read_characters(str(value), what)
    whole = _WHOLE.fullmatch(label)
    return whole[1] if whole else label


def _read_characters(text: str, what: str) -> str:
    """The text itself, unless it has half of a pair of surrogates, which JSON can spell."""
    try:
        text.encode()
    except UnicodeEncodeError:
        raise UnusableRow(f"the {what} has characters that are none", text) from None
    return text


def _read_spans(value: Any, text: Text) -> tuple[Span, ...]:
    if _is_missing(value):
        return ()
    within = text if isinstance(text, str) else text[1]
    try:
        return _spans(_parsed(value), within)
    except (ValueError, TypeError, KeyError, IndexError) as error:
        raise UnusableRow("the spans cannot be read", f"{error}: {value}") from error


def _parsed(value: Any) -> list[Any]:
    """A list, as JSON if it is a text that looks so; any other text is one marked phrase."""
    if isinstance(value, str):
        value = json.loads(value) if value.lstrip().startswith("[") else [value]
    if not isinstance(value, (list, tuple)):
        raise TypeError("a list is wanted")
    return list(value)


def _spans(marks: list[Any], text: str) -> tuple[Span, ...]:
    """Places `[start, end]`, words of the text, or a 0 or 1 for each of its words."""
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
