"""Pieces of a result in a terminal, with or without colour."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from rich.cells import cell_len, set_cell_size
from rich.style import Style
from rich.table import Table
from rich.text import Text

from attlas.views.colours import DARK, background, css, ink, pole, strength
from attlas.views.units import (
    ShownUnit,
    gap,
    in_segments,
    limit,
    patches,
    units_except,
    visible,
)

LABEL, BAR = 20, 20  # the widths of a label and of a bar, in columns
_FAINT = 0.06  # a unit below this share of the limit keeps the terminal's colours
_SHADES = "·░▒▓█"


def coloured_text(payload: Mapping[str, Any], units: Sequence[ShownUnit]) -> Iterator[Text]:
    """The text and the patches of a picture, coloured by score, each on a scale of its own."""
    seen, signed = patches(payload, units), payload["signed"]
    cells = [cell for _, own in seen for cell in own]
    others = units_except(units, cells)
    if not cells or not all(unit.special for unit in others):
        yield from _flow(others, limit(others), signed)
    for picture, own in seen:
        if len(seen) > 1:
            yield Text(visible(picture["segment"]), style="dim")
        yield from _grid(own, picture["grid"][1], limit(cells), signed)


def prediction(payload: Mapping[str, Any]) -> Iterator[Text]:
    """The model's most likely answers with their probabilities, one on each line."""
    for row in payload["prediction"]:
        share, is_target = row.get("probability"), row["label"] == payload["target"]["name"]
        line = Text(fit(visible(row["label"])), style="bold" if is_target else "", no_wrap=True)
        if share is not None:
            line.append(f" {share:.3f} {rightwards(share)}")
        elif row.get("value") is not None:
            line.append(f" {row['value']:.3f}")
        line.append(" target" if is_target else "")
        line.rstrip()
        yield line


def request_line(payload: Mapping[str, Any]) -> Text:
    """The method, the model and the target."""
    target = payload["target"]
    parts = [f"{payload['method']} on {payload['model']}", f"target {target['name']}"]
    if target.get("position") is not None:
        parts[-1] += f" at {_word_at(payload, target['position'])}"
    if target.get("contrast"):
        parts[-1] += f" rather than {target['contrast']}"
    if target.get("value") is not None:
        parts.append(f"{target['quantity']} {target['value']:.3f}")
    if payload.get("true_label"):
        parts.append(f"true label {payload['true_label']}")
    return Text(visible(" · ".join(parts)), style="dim")


def warning(payload: Mapping[str, Any]) -> Iterator[Text]:
    """Why the scores must not be relied on, if there is a reason."""
    if payload.get("warning"):
        yield Text(f"Warning: {visible(payload['warning'])}", style="bold red")


def _word_at(payload: Mapping[str, Any], position: int) -> str:
    """The word that holds a token, or the token itself."""
    words = [each["text"] for each in payload.get("words") or () if position in each["positions"]]
    return str(words[0] if words else payload["tokens"][position]["label"])


def _flow(units: Sequence[ShownUnit], top: float, signed: bool) -> Iterator[Text]:
    rows = in_segments(units)
    for name, row in rows.items():
        line = Text()
        if len(rows) > 1:
            line.append(f"{visible(name)}: ", style="dim")
        before = None
        for unit in row:
            line.append(gap(before, unit))
            line.append(unit.text, style=style_of(unit, top, signed))
            before = unit
        yield line


def _grid(cells: Sequence[ShownUnit], columns: int, top: float, signed: bool) -> Iterator[Text]:
    width = 2 if columns <= 40 else 1
    for start in range(0, len(cells), columns):
        line = Text(no_wrap=True)
        for cell in cells[start : start + columns]:
            share = strength(cell.score, top)
            shade = _SHADES[round(abs(share) * (len(_SHADES) - 1))]
            line.append(shade * width, style=Style(color=css(pole(share, signed, DARK))))
        yield line


def notes(payload: Mapping[str, Any]) -> Iterator[Text]:
    """The notes, one on each line."""
    found = payload.get("notes") or ()
    if found:
        yield Text()
    for note in found:
        yield Text(f"Note: {visible(note)}")


def style_of(unit: ShownUnit, top: float, signed: bool) -> Style:
    """The colours of a unit."""
    share = strength(unit.score, top)
    if unit.special:
        return Style(dim=True)
    if abs(share) < _FAINT:
        return Style()
    paper = background(share, signed, DARK)
    return Style(color=css(ink(paper, DARK)), bgcolor=css(paper))


def rightwards(share: float) -> str:
    """A bar that starts at the left, for a share from 0 to 1."""
    halves = round(share * BAR * 2)
    return ("█" * (halves // 2) + "▌" * (halves % 2)).ljust(BAR)


def fit(text: str, width: int = LABEL) -> str:
    """The text, cut or padded to exactly `width` columns."""
    if cell_len(text) > width:
        text = set_cell_size(text, width - 1) + "…"
    return set_cell_size(text, width)


def interval(
    figure: Mapping[str, Any], span: tuple[float, float], mark: float | None, width: int
) -> str:
    """A figure on a line of text: a thick interval, a dot at the value, a bar at the mark."""
    line = ["─"] * width
    place = {
        name: _place(value, span, width)
        for name, value in {**figure, "mark": mark}.items()
        if name != "n" and value is not None
    }
    if "mark" in place:
        line[place["mark"]] = "┼"
    if "low" in place and "high" in place:
        reach = slice(place["low"], place["high"] + 1)
        line[reach] = "━" * len(line[reach])
    if "value" in place:
        line[place["value"]] = "●"
    return "".join(line)


def _place(value: float, span: tuple[float, float], width: int) -> int:
    share = (value - span[0]) / (span[1] - span[0])
    return round(min(1.0, max(0.0, share)) * (width - 1))


def text_table(cells: Sequence[Sequence[str]]) -> Table:
    """A table of texts; the first row is the head, and the first column is aligned left."""
    head, *rows = cells
    table = Table(box=None, pad_edge=False, padding=(0, 1, 0, 0))
    for number, name in enumerate(head):
        table.add_column(name, justify="right" if number else "left", overflow="fold")
    for row in rows:
        table.add_row(*map(Text, row))
    return table
