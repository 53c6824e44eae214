"""A report: answer, findings, an example, what to do, then the evidence; 80 columns wide."""

from collections.abc import Iterator, Mapping, Sequence
from textwrap import wrap
from typing import Any

from rich.console import Group
from rich.table import Table
from rich.text import Text

from attlas.views import report_words as words
from attlas.views.markup import MONO, QUIET, as_text, card
from attlas.views.report_verdict import (
    answer_fragments,
    answer_lines,
    evidence_fragments,
    evidence_lines,
    example_fragments,
    example_lines,
    short_lines,
    step_fragments,
    step_lines,
)
from attlas.views.terminal import fit, interval, notes
from attlas.views.units import visible

Payload = Mapping[str, Any]
_COLUMNS, _NAME, _BAR = 80, 24, 26  # the widths of a line, of a method's name, of an interval
_REMOVAL = 15  # the width of a removal's name
_MEASURES, _WIDE = 5, 10  # measures side by side, and the width of each
_FIRST = "text-align:left;padding:1px 8px 1px 0"
_CELL = "text-align:right;padding:1px 8px;white-space:nowrap"
_TABLE = f"{MONO};font-size:12px;border-collapse:collapse;margin:8px 0"


def render(payload: Payload) -> Group:
    """The answer and the best methods; if the whole is asked for, all that they rest on."""
    if not payload.get("whole"):
        return Group(*short_lines(payload))
    verdict = payload["verdict"]
    return Group(
        *answer_lines(payload),
        *_findings(payload["findings"][: words.MOST_FINDINGS]),
        *example_lines(payload),
        *step_lines(payload),
        *_findings(payload["findings"][words.MOST_FINDINGS :]),
        *_plausibility(payload),
        *evidence_lines(payload),
        *_standings(payload),
        *_tables(payload),
        *_unusual(payload),
        *words.trial_lines(payload),
        *notes({"notes": [*verdict["notes"], *payload["notes"], *payload["does_not_show"]]}),
        *_end(payload),
    )


def _findings(findings: Sequence[Payload]) -> Iterator[Text]:
    if findings:
        yield Text()
    for finding in findings:
        yield from _finding(finding)


def _plausibility(payload: Payload) -> Iterator[Text]:
    if payload["plausibility"]:
        yield Text()
        yield Text("Not about faithfulness, and not counted in the answer:", style="dim")
        yield from _finding(payload["plausibility"])


def _finding(finding: Payload) -> Iterator[Text]:
    low, high = finding["span"]
    drawn = interval(finding["figure"], (low, high), finding["mark"], _BAR)
    yield Text(visible(finding["title"]), style="bold")
    yield Text(visible(finding["sentence"]))
    yield Text(f"{low:g} {drawn} {high:g}  {words.figure_words(finding['figure'])}")


def _standings(payload: Payload) -> Iterator[Text]:
    rows = words.standing_rows(payload)
    if not rows:
        return
    removals = list(dict.fromkeys(each["removal"] for each in payload["standings"]))
    column = 9 if len(removals) <= 3 else 6
    bar = min(_BAR, _COLUMNS - _NAME - 4 - len(removals) * (column + 1))
    lows = [each["figure"]["low"] or 0.0 for each in payload["standings"]]
    span = (min(-0.1, *lows), 1.0)
    yield from (Text(), Text("How much of what matters each method finds", style="bold"))
    yield Text(
        f"0: chance. 1: as much as can be found. Drawn: {visible(removals[0])}.", style="dim"
    )
    yield Text(words.LETTERS, style="dim")
    heads = "".join(f" {visible(removal)[:column]:>{column}}" for removal in removals)
    yield Text(f"{'':{_NAME + 2}}{heads}", style="dim")
    for method, family, row in rows:
        by_removal = {each["removal"]: each["figure"] for each in row}
        found = [by_removal.get(removal, {"value": None}) for removal in removals]
        figures = "".join(f" {words.number(each['value']):>{column}}" for each in found)
        drawn = interval(found[0], span, 0.0, bar)
        name = f"{fit(visible(method), _NAME)} {family[0].upper()}"
        yield Text(f"{name}{figures}  {drawn}", style="dim" if family == "control" else "")


def _tables(payload: Payload) -> Iterator[Any]:
    removals = words.removals_of(payload)
    for removal in removals[:1]:
        found = words.columns_of(payload, removal, plausible=False)
        if not found:
            continue
        yield from (Text(), Text(f"All methods, {_words(removal)}", style="bold"))
        yield Text("↑ more is better, ↓ less is better, ★ significantly the best", style="dim")
        for start in range(0, len(found), _MEASURES):
            yield _table(payload, found[start : start + _MEASURES])
    if removals[1:]:
        others = ", ".join(_words(removal) for removal in removals[1:])
        yield Text(f"The figures of {others}, and all intervals, are on the page.", style="dim")


def _unusual(payload: Payload) -> Iterator[Text]:
    """How strange texts without some tokens are to the model, by removal."""
    found = payload["unusual"]
    if not found:
        return
    yield from (Text(), Text("Are texts without some tokens strange to the model?", style="bold"))
    usual = visible(found[0]["usual"])
    yield Text(f"0.5: no stranger than {usual}. 1: always stranger.", style="dim")
    for each in found:
        drawn = interval(each["figure"], (0.0, 1.0), 0.5, _BAR)
        name = fit(visible(each["removal"]), _REMOVAL)
        yield Text(f"{name} {drawn}  {words.figure_words(each['figure'])}")
        if each["remedy"]:
            yield Text(f"  {visible(each['remedy'])}")


def _words(removal: str) -> str:
    return f"removal by {visible(removal)}" if removal else "nothing removed"


def _head(column: Payload) -> Text:
    lines = wrap(words.heading(column).replace("_", " _"), _WIDE)
    return Text("\n".join(lines).replace(" _", "_"))


def _table(payload: Payload, columns: Sequence[int]) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 1, 0, 0))
    table.add_column("", width=_NAME, no_wrap=True)
    for place in columns:
        table.add_column(
            _head(payload["table"]["columns"][place]),
            width=_WIDE,
            justify="right",
            vertical="bottom",
        )
    for row in words.rows_of(payload):
        shown = [Text(words.cell_words(row["cells"][place])) for place in columns]
        style = "dim" if row["family"] == "control" else ""
        table.add_row(Text(fit(visible(row["method"]), _NAME)), *shown, style=style)
    return table


def _end(payload: Payload) -> Iterator[Text]:
    left = payload["data"]["left_out"]
    if left:
        told = ", ".join(f"{count} × {visible(reason)}" for reason, count in left.items())
        yield from (Text(), Text(f"Left out: {told}", style="dim"))
    made = [f"seed {payload['seed']}", f"{payload['seconds']:.0f} s"]
    yield from (Text(), Text(" · ".join(made), style="dim"))
    if payload["command"]:
        yield Text(visible(payload["command"]), style="dim")


def fragment(payload: Payload) -> str:
    """The answer, findings, an example, what to do, the evidence and the table, as HTML."""
    verdict = payload["verdict"]
    findings, rows = "".join(_finding_rows(payload)), "".join(_table_rows(payload))
    parts = [
        *answer_fragments(payload),
        f'<table style="{_TABLE}">{findings}</table>',
        *example_fragments(payload),
        *step_fragments(payload),
        *evidence_fragments(payload),
        f'<table style="{_TABLE};display:block;overflow:auto">{rows}</table>',
        *words.trial_fragments(payload),
    ]
    told = [*verdict["notes"], *payload["notes"], *payload["does_not_show"]]
    return card([*parts, *(f'<div style="{QUIET}">{as_text(note)}</div>' for note in told)])


def _finding_rows(payload: Payload) -> Iterator[str]:
    found = [*payload["findings"], payload["plausibility"]]
    for finding in filter(None, found):
        title = f'<td style="{_FIRST}">{as_text(finding["title"])}</td>'
        figure = as_text(words.figure_words(finding["figure"]))
        told = as_text(finding["sentence"])
        shown = f'<td style="{_CELL}">{figure}</td>'
        yield f'<tr style="background:none" title="{told}">{title}{shown}</tr>'


def _table_rows(payload: Payload) -> Iterator[str]:
    columns = payload["table"]["columns"]
    heads = [f"{words.heading(column)} {column['removal']}".rstrip() for column in columns]
    yield _row(["", *heads], QUIET)
    for row in words.rows_of(payload):
        shown = [words.cell_words(cell) for cell in row["cells"]]
        yield _row([row["method"], *shown], QUIET if row["family"] == "control" else "")


def _row(shown: list[str], look: str) -> str:
    first, *others = shown
    rest = "".join(f'<td style="{_CELL}">{as_text(each)}</td>' for each in others)
    head = f'<td style="{_FIRST}">{as_text(first) if first else ""}</td>'
    return f'<tr style="background:none;{look}">{head}{rest}</tr>'
