"""Plots as JSON, which trials make and the views of a report draw.

A plot has a kind, a title and one sentence that says how to read it. An unknown number is None or
NaN. Values whose lengths do not match are refused here.
"""

from collections.abc import Mapping, Sequence
from math import isfinite
from typing import Any

import numpy as np

from attlas.errors import UnknownNameError, UsageError

Plot = dict[str, Any]
KINDS = ("scatter", "curve", "bars", "violins", "matrix", "maps", "table")
SHARES = (0.05, 0.25, 0.5, 0.75, 0.95)  # of the values of a violin that lie below its marks
SLICES = 24  # of the outline of a violin


def scatter(
    title: str,
    points: Mapping[str, tuple[Any, Any]],
    *,
    x_label: str,
    y_label: str,
    reading: str,
    arrows_from: str | None = None,
) -> Plot:
    """Points in named groups; `points` maps a name to its numbers along both axes.

    `arrows_from` names a group: arrows lead from its first point to the first of each other group.
    """
    groups = []
    for name, (x, y) in points.items():
        across, up = _numbers(x), _numbers(y)
        _check_lengths(f"{title}: {name}", "places across", across, "places up", up)
        groups.append({"name": name, "x": across, "y": up})
    if arrows_from is not None and arrows_from not in points:
        raise UnknownNameError("group", arrows_from, points)
    arrows = {} if arrows_from is None else {"arrows_from": arrows_from}
    axes = {"x_label": x_label, "y_label": y_label}
    return _plot("scatter", title, reading, **axes, groups=groups, **arrows)


def curve(
    title: str,
    x: Any,
    lines: Mapping[str, Any],
    *,
    x_label: str,
    y_label: str,
    reading: str,
    bands: Mapping[str, tuple[Any, Any]] | None = None,
) -> Plot:
    """Lines over one axis; `bands` maps some of their names to the ends of their intervals."""
    places, made = _numbers(x), []
    for name, values in lines.items():
        line: Plot = {"name": name, "y": _numbers(values), "low": None, "high": None}
        if bands and name in bands:
            line["low"], line["high"] = map(_numbers, bands[name])
        for each in (line["y"], line["low"] or places, line["high"] or places):
            _check_lengths(f"{title}: {name}", "points", each, "places", places)
        made.append(line)
    return _plot("curve", title, reading, x_label=x_label, y_label=y_label, x=places, lines=made)


def bars(
    title: str,
    values: Mapping[str, Any],
    *,
    x_label: str,
    reading: str,
    intervals: Mapping[str, tuple[Any, Any]] | None = None,
) -> Plot:
    """A bar for each name; `intervals` maps some of the names to low and high ends."""
    made = []
    for name, value in values.items():
        low, high = (intervals or {}).get(name, (None, None))
        known = dict(zip(("value", "low", "high"), _numbers([value, low, high]), strict=True))
        made.append({"name": name, **known})
    return _plot("bars", title, reading, x_label=x_label, y_label="", bars=made)


def violins(
    title: str,
    values: Mapping[str, Any],
    *,
    x_label: str,
    y_label: str,
    reading: str,
) -> Plot:
    """How the values of each group are spread: an outline, quartiles, and 5 % and 95 %."""
    groups = []
    for name, each in values.items():
        made = each if isinstance(each, Mapping) else spread_of(each)
        _check_lengths(f"{title}: {name}", "marks", made["marks"], "shares", SHARES)
        widths, places = made["widths"], made["places"]
        _check_lengths(f"{title}: {name}", "widths", widths, "places", places)
        kept = {field: _numbers(made[field]) for field in ("marks", "places", "widths")}
        groups.append({"name": name, **kept, "count": int(made["count"])})
    return _plot("violins", title, reading, x_label=x_label, y_label=y_label, groups=groups)


def spread_of(values: Any) -> Plot:
    """The marks of a violin, and its outline: the share of the values in equal slices."""
    known = np.array([each for each in _numbers(values) if each is not None], dtype=np.float64)
    if not len(known):
        return {"marks": [None] * len(SHARES), "places": [], "widths": [], "count": 0}
    shares, edges = np.histogram(known, bins=SLICES)
    places = (edges[1:] + edges[:-1]) / 2
    widths = shares / shares.max()
    return {
        "marks": np.quantile(known, SHARES).tolist(),
        "places": places.tolist(),
        "widths": widths.tolist(),
        "count": len(known),
    }


def matrix(
    title: str,
    rows: Sequence[str],
    columns: Sequence[str],
    values: Any,
    *,
    x_label: str,
    y_label: str,
    reading: str,
) -> Plot:
    """Numbers by row and column."""
    made = _matrix(title, rows, columns, values)
    named = {"rows": list(rows), "columns": list(columns), "values": made}
    return _plot("matrix", title, reading, x_label=x_label, y_label=y_label, **named)


def maps(
    title: str,
    queries: Sequence[str],
    keys: Sequence[str],
    weights: Mapping[str, Any],
    *,
    reading: str,
) -> Plot:
    """Attention maps of the same tokens side by side; `weights` maps a name to query × key."""
    made = [
        {"name": name, "values": _matrix(f"{title}: {name}", queries, keys, each)}
        for name, each in weights.items()
    ]
    named = {"rows": list(queries), "columns": list(keys), "maps": made}
    return _plot("maps", title, reading, x_label="key", y_label="query", **named)


def table(
    title: str, columns: Sequence[str], rows: Sequence[Sequence[Any]], *, reading: str
) -> Plot:
    """A table of words and numbers."""
    made = [[_cell(each) for each in row] for row in rows]
    for number, row in enumerate(made):
        _check_lengths(f"{title}: row {number}", "cells", row, "columns", columns)
    return _plot("table", title, reading, x_label="", y_label="", columns=list(columns), rows=made)


def check_plot(plot: Mapping[str, Any]) -> None:
    """Refuse what no view can draw: an unknown kind, missing fields, or lengths that differ."""
    given = {key: value for key, value in plot.items() if key not in ("kind", "title", "reading")}
    kind, title, reading = (plot.get(key) for key in ("kind", "title", "reading"))
    if kind not in KINDS:
        raise UnknownNameError("kind of plot", str(kind), KINDS)
    if not (isinstance(title, str) and isinstance(reading, str) and title and reading):
        raise UsageError(f"a plot needs a title and a reading, not {title!r} and {reading!r}")
    try:
        made = _made_again(kind, title, reading, given)
    except (KeyError, TypeError) as problem:
        raise UsageError(f"{title}: this cannot be drawn as a {kind} ({problem})") from problem
    if made != plot:
        wrong = sorted(key for key in {*made, *plot} if made.get(key) != plot.get(key))
        raise UsageError(
            f"{title}: a {kind} cannot be drawn with these values of {', '.join(wrong)}"
        )


def _made_again(kind: str, title: str, reading: str, given: Mapping[str, Any]) -> Plot:
    """The plot made again from its own values."""
    if kind == "table":
        return table(title, given["columns"], given["rows"], reading=reading)
    if kind == "maps":
        weights = {each["name"]: each["values"] for each in given["maps"]}
        return maps(title, given["rows"], given["columns"], weights, reading=reading)
    axes = {"x_label": given["x_label"], "reading": reading}
    if kind == "bars":
        values = {each["name"]: each["value"] for each in given["bars"]}
        spread = {each["name"]: (each["low"], each["high"]) for each in given["bars"]}
        return bars(title, values, intervals=spread, **axes)
    axes["y_label"] = given["y_label"]
    if kind == "violins":
        return violins(title, {each["name"]: each for each in given["groups"]}, **axes)
    if kind == "scatter":
        points = {each["name"]: (each["x"], each["y"]) for each in given["groups"]}
        return scatter(title, points, **axes, arrows_from=given.get("arrows_from"))
    if kind == "matrix":
        return matrix(title, given["rows"], given["columns"], given["values"], **axes)
    lines = {each["name"]: each["y"] for each in given["lines"]}
    bands = {e["name"]: (e["low"], e["high"]) for e in given["lines"] if e["low"] is not None}
    return curve(title, given["x"], lines, bands=bands, **axes)


def _plot(kind: str, title: str, reading: str, **given: Any) -> Plot:
    return {"kind": kind, "title": title, "reading": reading, **given}


def _numbers(values: Any) -> list[float | None]:
    """The values as numbers; None for NaN and infinity."""
    return [_number(each) for each in (values.tolist() if hasattr(values, "tolist") else values)]


def _number(value: Any) -> float | None:
    return float(value) if value is not None and isfinite(value) else None


def _cell(value: Any) -> str | float | int | None:
    """A cell of a table: words, a whole number, or a number."""
    if value is None or isinstance(value, (str, int, np.integer)):
        return int(value) if isinstance(value, np.integer) else value
    return _number(value)


def _matrix(title: str, rows: Sequence[Any], columns: Sequence[Any], values: Any) -> list[Any]:
    made = [_numbers(row) for row in values]
    _check_lengths(title, "rows of numbers", made, "names of rows", rows)
    for row in made:
        _check_lengths(title, "numbers in a row", row, "names of columns", columns)
    return made


def _check_lengths(
    title: str, one: str, these: Sequence[Any], other: str, those: Sequence[Any]
) -> None:
    if len(these) != len(those):
        raise UsageError(f"{title}: {len(these)} {one}, but {len(those)} {other}")
