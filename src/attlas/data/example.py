"""Example: one text with its label and what is known of why it has that label."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

Text = str | tuple[str, str]
Span = tuple[int, int]


@dataclass(frozen=True)
class Example:
    """A text, its label, and the spans of characters that carry it.

    `spans` are half-open and in the text (of a pair: in its second part, unless `fields` says
    otherwise). Who marked them is said by the set: a reader (a rationale), an editor (what was
    changed to flip the label), or the generator itself, which knows.
    """

    text: Text
    label: str | None = None
    spans: tuple[Span, ...] = ()
    fields: Mapping[str, Any] = field(default_factory=dict)
