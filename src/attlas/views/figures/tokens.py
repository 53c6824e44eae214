"""A sentence, each word on the colour of its score, with wrapped lines."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any
from unicodedata import bidirectional

from matplotlib.patches import FancyBboxPatch

from attlas.errors import UsageError
from attlas.views import report_words
from attlas.views.colours import background, css, ink, strength
from attlas.views.figures import figure
from attlas.views.figures.paper import (
    BODY,
    PAPER,
    QUIET,
    RULE,
    SMALL,
    Room,
    shorten,
    text_width,
    write,
)
from attlas.views.figures.weights import generation_scores
from attlas.views.units import (
    ShownUnit,
    gap,
    in_segments,
    limit,
    patches,
    scored_units,
    units_except,
    visible,
    words_or_tokens,
)

Payload = Mapping[str, Any]
_PAD, _SPACE, _PITCH = 0.025, 0.055, 0.205  # inches: beside a word, between words, of lines
_BOX = 0.155  # the height of a coloured box
_EDGE = 0.02  # inches of paper around the text


@dataclass(frozen=True)
class PlacedUnit:
    """A unit, or a part of one that is longer than a line, in inches from the top left."""

    unit: ShownUnit
    x: float
    line: int
    width: float


@dataclass(frozen=True)
class Heading:
    """The name of a segment, on a line of its own."""

    text: str
    line: int


@figure("explanation", "tokens")
def tokens(room: Room, payload: Payload) -> Any:
    """The words of an explanation."""
    units = words_or_tokens(payload)
    cells = [cell for _, own in patches(payload, units) for cell in own]
    words = units_except(units, cells)
    target = shorten(payload["target"]["name"].strip())
    return sentence(room, words, payload["signed"], f"for {target}", shorten(payload["method"]))


@figure("generation", "tokens")
def generated_tokens(room: Room, payload: Payload, *, output: int | None = None) -> Any:
    """What a written token owes to the tokens before it, or the mean over all of them."""
    scores = generation_scores(payload)
    if output is not None and not -len(scores) <= output < len(scores):
        raise UsageError(f"no output {output}: {len(scores)} tokens were written, the first is 0")
    chosen = scores.mean(axis=0) if output is None else scores[output]
    units = scored_units(payload, chosen.tolist())
    if output is None:
        about = "the written text"
    else:
        about = shorten(payload["tokens"][payload["outputs"][output]]["label"])
        stop = payload["outputs"][output]
        units = [unit for unit in units if max(unit.positions) < stop]
    method = shorten(payload["method"])
    return sentence(room, units, payload["signed"], f"for {about}", method)


@figure("report", "example")
def report_example(room: Room, payload: Payload, *, example: int = 0, method: str = "") -> Any:
    """One of the report's texts, coloured by a method, or by what matters if none is named."""
    found = payload["examples"]
    if not -len(found) <= example < len(found):
        raise UsageError(f"no example {example}: the report has {len(found)}, the first is 0")
    chosen = found[example]
    readings = {each["method"]: each for each in chosen["readings"]}
    if method and method not in readings:
        raise UsageError(f"no reading by {method!r}: there are {', '.join(readings) or 'none'}")
    if not method and not chosen["truth"]:
        method = next(iter(readings), "")
    scores = readings[method]["scores"] if method else report_words.pulls(chosen)
    signed = readings[method]["signed"] if method else True
    units = report_words.example_words(chosen, scores)
    about = f"for {shorten(chosen['label'])}"
    return sentence(room, units, signed, about, shorten(method) if method else "what matters")


def sentence(
    room: Room, units: Sequence[ShownUnit], signed: bool, meaning: str, method: str
) -> Any:
    """Units on the colours of their scores; a last line says what the colours mean."""
    placed = list(place_units(units, room.width - 2 * _EDGE))
    lines = 1 + max((each.line for each in placed), default=0)
    height = _PITCH * (lines + 1) + 2 * _EDGE
    axes = room.axes(height)
    axes.set(xlim=(-_EDGE, room.width - _EDGE), ylim=(height - _EDGE, -_EDGE))
    axes.set_axis_off()
    top = limit(units)
    for each in placed:
        if isinstance(each, Heading):
            write(axes, 0, _baseline(each.line), each.text, color=QUIET)
        else:
            _draw_unit(axes, each, top, signed)
    _draw_legend(axes, _baseline(lines) + 0.02, signed, meaning, method)
    return axes


def place_units(units: Sequence[ShownUnit], width: float) -> Iterator[PlacedUnit | Heading]:
    """Units on lines of this width; a segment that is written from right to left goes that way."""
    segments, line = in_segments(units), 0
    for name, row in segments.items():
        if len(segments) > 1:
            yield Heading(visible(name), line)
            line += 1
        placed = list(_wrap(row, width, line))
        for each in placed:
            mirrored = width - each.x - each.width if _is_leftward(row) else each.x
            yield replace(each, x=mirrored)
        line = placed[-1].line + 1


def _wrap(row: Sequence[ShownUnit], width: float, line: int) -> Iterator[PlacedUnit]:
    x, before = 0.0, None
    for unit in row:
        between = _SPACE if gap(before, unit) else 0.01
        for number, part in enumerate(_parts(unit, width)):
            across = text_width(part.text, _points(part)) + 2 * _PAD
            x += (between if x else 0.0) if not number else 0.0
            if x and x + across > width:
                x, line = 0.0, line + 1
            yield PlacedUnit(part, x, line, across)
            x += across
        before = unit


def _parts(unit: ShownUnit, width: float) -> Iterator[ShownUnit]:
    """The unit; one that is wider than a line in pieces that are not."""
    text = unit.text
    while text_width(text, _points(unit)) + 2 * _PAD > width and len(text) > 1:
        size = max(1, int(len(text) * width / (text_width(text, _points(unit)) + 2 * _PAD)))
        while size > 1 and text_width(text[:size], _points(unit)) + 2 * _PAD > width:
            size -= 1
        yield replace(unit, text=text[:size])
        text = text[size:]
    yield replace(unit, text=text)


def _is_leftward(row: Sequence[ShownUnit]) -> bool:
    """Whether the first letter of a text is of a script that is written from right to left."""
    kinds = (bidirectional(sign) for unit in row if not unit.special for sign in unit.text)
    return next((kind for kind in kinds if kind in ("L", "R", "AL")), "L") != "L"


def _points(unit: ShownUnit) -> float:
    return SMALL if unit.special else BODY


def _baseline(line: int) -> float:
    return _PITCH * line + 0.14


def _draw_unit(axes: Any, placed: PlacedUnit, top: float, signed: bool) -> None:
    unit, base = placed.unit, _baseline(placed.line)
    paper = background(strength(unit.score, top), signed, PAPER)
    edge, fill, colour = css(paper), css(paper), css(ink(paper, PAPER))
    if unit.special:
        edge, fill, colour = RULE, "none", QUIET
    box = FancyBboxPatch(
        (placed.x, base - 0.113),
        placed.width,
        _BOX,
        "round,pad=0,rounding_size=0.02",
        facecolor=fill,
        edgecolor=edge,
        linewidth=0.5 if unit.special else 0,
    )
    axes.add_patch(box)
    look = {"size": _points(unit), "color": colour, "ha": "center", "va": "baseline"}
    write(axes, placed.x + placed.width / 2, base, unit.text, **look)


def _draw_legend(axes: Any, base: float, signed: bool, meaning: str, method: str) -> None:
    poles = [(PAPER.favour, meaning), (PAPER.against, "against")] if signed else []
    poles = poles or [(PAPER.plain, f"more {meaning}")]
    x = 0.0
    for colour, words in poles:
        axes.add_patch(
            FancyBboxPatch((x, base - 0.075), 0.08, 0.08, "square,pad=0", fc=css(colour))
        )
        axes.patches[-1].set_edgecolor("none")
        write(axes, x + 0.11, base, words, color=QUIET)
        x += 0.11 + text_width(words) + 0.12
    write(axes, x, base, f"· {method}", color=QUIET)
