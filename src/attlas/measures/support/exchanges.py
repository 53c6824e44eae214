"""Two versions of a text, exchanged piece by piece."""

import re
from collections.abc import Collection
from dataclasses import dataclass
from difflib import SequenceMatcher

_PIECE = re.compile(r"\s*\S+")  # a word with the white space before it


@dataclass(frozen=True)
class Exchange:
    """Words of one version, as a half-open range, and what stands in their place in the other."""

    first: int
    last: int
    instead: str

    def touches(self, words: Collection[int]) -> bool:
        """Whether one of these words is exchanged, or stands beside what is only put in."""
        beside = range(self.first - 1, self.last + 1)
        return any(word in words for word in range(self.first, self.last) or beside)


def exchanges(before: str, after: str) -> list[Exchange]:
    """What makes one version the other; capitals and punctuation at words do not count."""
    old, new = _PIECE.findall(before), _PIECE.findall(after)
    matcher = SequenceMatcher(None, [*map(_plain, old)], [*map(_plain, new)], autojunk=False)
    return [
        Exchange(first, last, "".join(new[start:stop]))
        for name, first, last, start, stop in matcher.get_opcodes()
        if name != "equal"
    ]


def exchanged(before: str, chosen: Collection[Exchange]) -> str:
    """The text with these exchanges made."""
    pieces, at, made = _PIECE.findall(before), 0, []
    for exchange in sorted(chosen, key=lambda each: each.first):
        made += [*pieces[at : exchange.first], exchange.instead]
        at = exchange.last
    return "".join([*made, *pieces[at:]])


def _plain(piece: str) -> str:
    return re.sub(r"\W", "", piece).lower() or piece.strip()
