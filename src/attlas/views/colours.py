"""The colours of a score, and the ink that stays readable on them.

`browser/colours.js` holds the same palette and the same rules; a test compares the two.
"""

from collections.abc import Iterable
from dataclasses import dataclass

RGB = tuple[int, int, int]

READABLE = 4.5  # the least contrast of text, by WCAG 2 level AA
_BLACK: RGB = (0, 0, 0)
_WHITE: RGB = (255, 255, 255)


@dataclass(frozen=True)
class Theme:
    """A paper, the colours a score draws it towards, and the two inks written on the result."""

    paper: RGB
    favour: RGB  # for the target
    against: RGB
    plain: RGB  # where scores have no sign
    inks: tuple[RGB, RGB]


LIGHT = Theme(
    paper=(252, 251, 248),
    favour=(224, 122, 20),
    against=(37, 99, 168),
    plain=(12, 92, 94),
    inks=((28, 27, 25), (255, 255, 255)),
)
DARK = Theme(
    paper=(22, 24, 27),
    favour=(240, 150, 60),
    against=(64, 132, 220),
    plain=(126, 211, 203),
    inks=((22, 24, 27), (244, 243, 240)),
)


def limit_of(scores: Iterable[tuple[float, bool]]) -> float:
    """The largest absolute score among those not marked special; among all where all are."""
    pairs = list(scores)
    chosen = [score for score, special in pairs if not special] or [score for score, _ in pairs]
    return max((abs(score) for score in chosen), default=0.0)


def strength(score: float, limit: float) -> float:
    """A score as a share of the limit, between -1 and 1."""
    return max(-1.0, min(1.0, score / limit)) if limit > 0 else 0.0


def pole(share: float, signed: bool, theme: Theme) -> RGB:
    """The full colour on the side where a score lies."""
    if not signed:
        return theme.plain
    return theme.favour if share >= 0 else theme.against


def background(share: float, signed: bool, theme: Theme) -> RGB:
    """The paper, drawn towards the colour of the score as far as the score is strong."""
    return _mix(theme.paper, pole(share, signed, theme), abs(share))


def ink(paper: RGB, theme: Theme) -> RGB:
    """The colour of text on this paper: the theme's better ink, or black or white if need be."""
    best = max(theme.inks, key=lambda colour: contrast(colour, paper))
    if contrast(best, paper) >= READABLE:
        return best
    return max((_BLACK, _WHITE), key=lambda colour: contrast(colour, paper))


def contrast(one: RGB, other: RGB) -> float:
    """The contrast of two colours, from 1 to 21, as WCAG 2 defines it."""
    low, high = sorted((_luminance(one), _luminance(other)))
    return (high + 0.05) / (low + 0.05)


def css(colour: RGB) -> str:
    """A colour as CSS and rich both read it."""
    return "#{:02x}{:02x}{:02x}".format(*colour)


def _mix(start: RGB, end: RGB, share: float) -> RGB:
    # Half rounds up, as in JavaScript, so that both give the same colour.
    red, green, blue = (int(a + (b - a) * share + 0.5) for a, b in zip(start, end, strict=True))
    return red, green, blue


def _luminance(colour: RGB) -> float:
    red, green, blue = (_linear(channel / 255) for channel in colour)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def _linear(channel: float) -> float:
    return channel / 12.92 if channel <= 0.04045 else float(((channel + 0.055) / 1.055) ** 2.4)
