"""Which tokens of a text people marked, from marks, spans of characters or an Example."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from attlas.data.example import Example
from attlas.errors import UsageError
from attlas.models.encoding.token_ids import is_number
from attlas.shapes import TokenMarks
from attlas.tokens import Tokens, overlap


def marked_tokens(marks: Any, tokens: Tokens, content: Sequence[int]) -> TokenMarks | None:
    """The marks of the content tokens; None if there are no marks.

    Spans are half-open, in the text or in the second text of a pair. Marks are one for each content
    token, or one for each token.
    """
    spans = marks.spans if isinstance(marks, Example) else marks
    if spans is None or (isinstance(marks, Example) and not spans):
        return None
    if all(_is_span(each) for each in spans):
        return _of_spans(spans, tokens, content)
    array = np.array(spans)
    if array.dtype != bool or len(array) not in (len(content), len(tokens)):
        raise UsageError(
            f"marks are spans of characters (start, end), or True and False for each of the "
            f"{len(content)} content tokens ({len(tokens)} with special ones), not {marks!r}"
        )
    return array if len(array) == len(content) else array[list(content)]


def _is_span(each: Any) -> bool:
    return isinstance(each, (tuple, list)) and len(each) == 2 and all(map(is_number, each))


def _of_spans(spans: Any, tokens: Tokens, content: Sequence[int]) -> TokenMarks:
    last = [name for name in dict.fromkeys(tokens.segments) if name in tokens.sources][-1]
    places = tokens.spans()
    marked = [
        tokens.segments[position] == last
        and any(overlap(places[position] or (0, 0), (start, end)) for start, end in spans)
        for position in content
    ]
    return np.array(marked, dtype=bool)
