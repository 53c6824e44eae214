"""The figures, the tables and the trials of a report in words."""

from collections.abc import Iterator, Mapping, Sequence
from math import floor
from typing import Any

from rich.text import Text

from attlas.views.markup import MONO, QUIET, as_text
from attlas.views.units import visible

Payload = Mapping[str, Any]
ARROWS = {"higher": "↑", "lower": "↓"}
MARKS = {"supported": "✓", "not supported": "✕", "partly": "◐", "too few texts": "…"}
FAMILIES = ("W", "V", "P", "reference", "control")


def figure_words(figure: Payload) -> str:
    """A figure with its interval and the number of its texts."""
    parts = [number(figure["value"])]
    if figure["low"] is not None and figure["high"] is not None:
        parts.append(f"({number(figure['low'])} to {number(figure['high'])})")
    words = " ".join(parts)
    return words if figure["n"] is None else f"{words}, {text_count(figure['n'])}"


def p_words(p: float | int) -> str:
    """A p-value with three decimals, halves rounded up."""
    if p < 0.001:
        return "p < .001"
    rounded = floor(1000 * p + 0.5)
    return "p = 1" if rounded == 1000 else f"p = .{rounded:03d}"


def claim_words(finding: Payload, payload: Payload) -> str:
    """What a finding claims, and its p-value; empty if it has none."""
    if finding["p"] is None:
        return ""
    return f"{visible(finding['claim'])}: {p_words(finding['p'])} {adjusted_words(payload)}"


def adjusted_words(payload: Payload) -> str:
    """The number of findings over which p-values were adjusted, in words."""
    found = [each for each in (*payload["findings"], payload["plausibility"]) if each]
    count = sum(each["p"] is not None for each in found)
    return f"after Holm over {count} finding{'' if count == 1 else 's'}"


def facts(payload: Payload) -> str:
    """The model, the data, and the model's accuracy if it is known."""
    data = payload["data"]
    words = f"{visible(payload['model'])} on {visible(data['name'])} · {text_count(data['texts'])}"
    right = data["accuracy"]
    if right is None or right["value"] is None:
        return words
    shares = (f"{100 * right[name]:.1f}" for name in ("low", "high") if right[name] is not None)
    return f"{words} · right {100 * right['value']:.1f} % ({' to '.join(shares)})"


def columns_of(payload: Payload, removal: str, *, plausible: bool) -> list[int]:
    """The positions of the columns with this removal: those of plausibility, or all others."""
    return [
        place
        for place, column in enumerate(payload["table"]["columns"])
        if column["removal"] == removal and (column["kind"] == "plausibility") == plausible
    ]


def removals_of(payload: Payload) -> list[str]:
    """The removals in the order of the table; no removal comes last."""
    found = dict.fromkeys(column["removal"] for column in payload["table"]["columns"])
    return sorted(found, key=lambda removal: removal == "")


def rows_of(payload: Payload) -> list[Payload]:
    """The rows of the table by family, controls last."""
    return sorted(payload["table"]["rows"], key=lambda row: FAMILIES.index(row["family"]))


def standing_rows(payload: Payload) -> list[tuple[str, str, list[Payload]]]:
    """Each method with its family and its standing by removal, the highest mean first."""
    rows: dict[str, list[Payload]] = {}
    for each in payload["standings"]:
        rows.setdefault(each["method"], []).append(each)
    ordered = sorted(rows.values(), key=_mean, reverse=True)
    return [(row[0]["method"], row[0]["family"], row) for row in ordered]


def heading(column: Payload) -> str:
    """The measure of a column, with an arrow for which way is better."""
    return f"{ARROWS.get(column['better'], '')} {visible(column['measure'])}"


def cell_words(cell: Payload) -> str:
    """A figure without its interval; a star marks the best, a question mark an odd one."""
    if cell["figure"]["value"] is None:
        return "circular" if cell["note"].startswith("circular") else "–"
    star = "★ " if cell["best"] else ""
    odd = "?" if cell["note"] else ""
    return f"{star}{number(cell['figure']['value'])}{odd}"


def number(value: float | int | None) -> str:
    """A number with two decimals, or a dash if it is unknown."""
    return "–" if value is None else f"{value:.2f}".replace("-", "−")


def text_count(count: int) -> str:
    """A number of texts in words: `1 text`, `2 texts`."""
    return f"{count} text{'' if count == 1 else 's'}"


def trial_lines(payload: Payload) -> Iterator[Text]:
    """The trials in a terminal: name, finding, attention, figures, and the titles of the plots."""
    if payload["trials"]:
        yield from (Text(), Text("The attention on trial", style="bold"))
    for trial in payload["trials"]:
        yield from (Text(), Text(visible(trial["name"]), style="bold"))
        yield from trial_body(trial)


def trial_body(trial: Payload) -> Iterator[Text]:
    """What one trial found, which attention it is about, its figures, and where its plots are."""
    yield Text(visible(trial["sentence"]))
    yield Text(f"Which attention: {visible(trial['scope'])}", style="dim")
    for each in trial["figures"]:
        yield Text(f"  {visible(each['name'])}: {_trial_figure(each)}")
    if trial["plots"]:
        yield Text(_plot_words(trial), style="dim")


def trial_fragments(payload: Payload) -> Iterator[str]:
    """The trials as pieces of HTML."""
    for trial in payload["trials"]:
        yield f'<div style="margin-top:8px"><b>{as_text(trial["name"])}</b></div>'
        yield f"<div>{as_text(trial['sentence'])}</div>"
        yield f'<div style="{QUIET}">Which attention: {as_text(trial["scope"])}</div>'
        for each in trial["figures"]:
            words = as_text(f"{each['name']}: {_trial_figure(each)}")
            yield f'<div style="{MONO};font-size:12px">{words}</div>'
        if trial["plots"]:
            yield f'<div style="{QUIET}">{as_text(_plot_words(trial))}</div>'


def _trial_figure(each: Payload) -> str:
    words = figure_words(each["figure"])
    return words if each["ceiling"] is None else f"{words}; at most {number(each['ceiling'])}"


def _plot_words(trial: Payload) -> str:
    titles = ", ".join(visible(plot["title"]) for plot in trial["plots"])
    return f"Drawn on the page: {titles}"


def _mean(standings: Sequence[Payload]) -> float:
    known = [each["figure"]["value"] for each in standings if each["figure"]["value"] is not None]
    return sum(known) / len(known) if known else float("-inf")
