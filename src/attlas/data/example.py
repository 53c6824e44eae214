"""Example: one text with its label and the words that carry the label."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

Text = str | tuple[str, str]
Span = tuple[int, int]
Record = dict[str, Any]  # one row of a data set, by the names of its columns


@dataclass(frozen=True)
class Example:
    """A text, its label, and the spans of characters that carry the label.

    The text is a string, a pair of strings, or a conversation: a list of messages. Spans are
    half-open. In a pair of texts they lie in the second one, unless `fields` says otherwise. Each
    data set says who marked them: a reader (a rationale), an editor (the words changed to flip the
    label), or the generator of the text, which knows them.
    """

    text: Any
    label: str | None = None
    spans: tuple[Span, ...] = ()
    fields: Mapping[str, Any] = field(default_factory=dict)
