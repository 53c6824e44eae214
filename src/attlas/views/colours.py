"""The colours of a score, and an ink that is readable on them.

`browser/colours.js` holds the same palette and the same rules; a test compares the two.
"""

from collections.abc import Iterable
from dataclasses import dataclass

RGB = tuple[int, int, int]

READABLE = 4.5  # the lowest contrast of text that WCAG 2 level AA allows
_BLACK: RGB = (0, 0, 0)
_WHITE: RGB = (255, 255, 255)


@dataclass(frozen=True)
class Theme:
    """A paper colour, the colours that scores blend it with, and two ink colours."""

    paper: RGB
    favour: RGB  # for the target
    against: RGB
    plain: RGB  # for scores without a sign
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
    """The largest absolute score that is not special; of all scores if all are special."""
    pairs = list(scores)
    chosen = [score for score, special in pairs if not special] or [score for score, _ in pairs]
    return max((abs(score) for score in chosen), default=0.0)


def strength(score: float, limit: float) -> float:
    """A score as a share of the limit, between -1 and 1."""
    return max(-1.0, min(1.0, score / limit)) if limit > 0 else 0.0


def pole(share: float, signed: bool, theme: Theme) -> RGB:
    """The full colour for a score of this sign."""
    if not signed:
        return theme.plain
    return theme.favour if share >= 0 else theme.against


def background(share: float, signed: bool, theme: Theme) -> RGB:
    """The paper colour, blended with the colour of the score in proportion to its strength."""
    return _mix(theme.paper, pole(share, signed, theme), abs(share))


def ink(paper: RGB, theme: Theme) -> RGB:
    """The colour of text on this paper: the better ink, or black or white if none is readable."""
    best = max(theme.inks, key=lambda colour: contrast(colour, paper))
    if contrast(best, paper) >= READABLE:
        return best
    return max((_BLACK, _WHITE), key=lambda colour: contrast(colour, paper))


def contrast(one: RGB, other: RGB) -> float:
    """The contrast of two colours, from 1 to 21, as WCAG 2 defines it."""
    low, high = sorted((_luminance(one), _luminance(other)))
    return (high + 0.05) / (low + 0.05)


def css(colour: RGB) -> str:
    """A colour in a form that both CSS and rich read."""
    return "#{:02x}{:02x}{:02x}".format(*colour)


def _mix(start: RGB, end: RGB, share: float) -> RGB:
    # Round half up, as JavaScript does, so that both give the same colour.
    red, green, blue = (int(a + (b - a) * share + 0.5) for a, b in zip(start, end, strict=True))
    return red, green, blue


def _luminance(colour: RGB) -> float:
    red, green, blue = (_linear(channel / 255) for channel in colour)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def _linear(channel: float) -> float:
    return channel / 12.92 if channel <= 0.04045 else float(((channel + 0.055) / 1.055) ** 2.4)
