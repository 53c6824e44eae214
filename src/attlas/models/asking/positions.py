"""Positions: a token among others, by its number or by the word that it begins."""

import re
from collections.abc import Sequence
from typing import Any

from torch import Tensor

from attlas.errors import UsageError
from attlas.models.encoding.token_ids import is_number
from attlas.tokens import Tokens, overlap

ALLOWED = 'a position is a number, a word, or a word and which one, ("was", 2)'


def check_position(position: int, tokens: Tokens) -> int:
    """A valid position among the tokens; negative ones count from the end."""
    if not -len(tokens) <= position < len(tokens):
        raise UsageError(f"unknown position {position}: the input has 0 to {len(tokens) - 1}")
    return position % len(tokens)


def find_position(given: Any, tokens: Tokens) -> tuple[int, tuple[str, ...]]:
    """The position that a user gave, as a number or as a word, and a note on a choice."""
    if is_number(given):
        return check_position(int(given), tokens), ()
    word, which = (given, None) if isinstance(given, str) else _word_and_number(given)
    places = _places_of(word, tokens)
    if not places:
        raise UsageError(f"the text has no word {word!r} to read at")
    if which is None:
        note = f"read at the first {word!r} of {len(places)}; ({word!r}, 2) is the second"
        return places[0], (note,) if len(places) > 1 else ()
    if not 1 <= which <= len(places):
        raise UsageError(f"there is no {word!r} number {which}: the text has {len(places)}")
    return places[which - 1], ()


def _word_and_number(given: Any) -> tuple[str, int]:
    if isinstance(given, Sequence) and len(given) == 2:
        word, which = given
        if isinstance(word, str) and is_number(which):
            return word, int(which)
    raise UsageError(f"{ALLOWED}, not {given!r}")


def _places_of(word: str, tokens: Tokens) -> list[int]:
    """The first token of each occurrence of a word, in the order of the tokens."""
    whole = re.compile(rf"(?<!\w){re.escape(word.strip())}(?!\w)") if word.strip() else None
    found = []
    for segment, text in tokens.sources.items():
        for match in whole.finditer(text) if whole else ():
            rows = zip(tokens.segments, tokens.offsets, strict=True)
            touched = [i for i, (name, o) in enumerate(rows) if name == segment and o]
            inside = [i for i in touched if overlap(tokens.offsets[i] or (0, 0), match.span())]
            found += inside[:1]
    return sorted(found)


def surest_frame(
    logits: Tensor, tokens: Tokens, wanted: list[int] | None, blank: int | None
) -> tuple[int, tuple[str, ...]]:
    """The frame where the wanted letters, or else any but the blank, are most certain."""
    sure = logits.float().softmax(-1)
    if wanted is None and blank is not None:
        sure[:, blank] -= 1  # chosen only if there is nothing else
    best = sure.max(-1).values if wanted is None else sure[:, wanted].sum(-1)
    position = int(best.argmax())
    return position, (f"read at {tokens[position]}, where it is most certain",)
