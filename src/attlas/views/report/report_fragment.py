"""A report as HTML that needs no script: the answer, the findings, the table."""

from collections.abc import Iterator, Mapping
from typing import Any

from attlas.views.fragment import MONO, QUIET, as_text, card
from attlas.views.report import report_cells as cells
from attlas.views.report.report_trials import trial_parts

Payload = Mapping[str, Any]
_FIRST = "text-align:left;padding:1px 8px 1px 0"
_CELL = "text-align:right;padding:1px 8px;white-space:nowrap"
_TABLE = f"{MONO};font-size:12px;border-collapse:collapse;margin:8px 0"


def report_fragment(payload: Payload) -> str:
    """The answer, the findings with their figures, and the table, as HTML."""
    verdict = payload["verdict"]
    mark = cells.MARKS.get(verdict["word"], "·")
    word = f"{mark} {as_text(verdict['word'])}"
    parts = [
        f'<div style="{QUIET}">{as_text(cells.facts(payload))}</div>',
        f"<div>{as_text(payload['question'])}</div>",
        f'<div style="font-size:24px;line-height:32px;font-weight:600">{word}</div>',
        f"<div>{as_text(verdict['sentence'])}</div>",
        f'<table style="{_TABLE}">{"".join(_findings(payload))}</table>',
        f'<table style="{_TABLE};display:block;overflow:auto">{"".join(_rows(payload))}</table>',
        *trial_parts(payload),
    ]
    told = [*verdict["notes"], *payload["notes"], *payload["does_not_show"]]
    return card([*parts, *(f'<div style="{QUIET}">{as_text(note)}</div>' for note in told)])


def _findings(payload: Payload) -> Iterator[str]:
    found = [*payload["findings"], payload["plausibility"]]
    for finding in filter(None, found):
        title = f'<td style="{_FIRST}">{as_text(finding["title"])}</td>'
        words = as_text(cells.figure_words(finding["figure"]))
        p = "" if finding["p"] is None else as_text(cells.p_words(finding["p"]))
        told = as_text(cells.claim_words(finding, payload))
        shown = f'<td style="{_CELL}">{words}</td><td style="{_CELL}" title="{told}">{p}</td>'
        yield f'<tr style="background:none">{title}{shown}</tr>'


def _rows(payload: Payload) -> Iterator[str]:
    columns = payload["table"]["columns"]
    heads = [f"{cells.heading(column)} {column['removal']}".rstrip() for column in columns]
    yield _row(["", *heads], QUIET)
    for row in cells.rows_of(payload):
        shown = [cells.cell_words(cell) for cell in row["cells"]]
        yield _row([row["method"], *shown], QUIET if row["family"] == "control" else "")


def _row(shown: list[str], look: str) -> str:
    first, *others = shown
    rest = "".join(f'<td style="{_CELL}">{as_text(each)}</td>' for each in others)
    head = f'<td style="{_FIRST}">{as_text(first) if first else ""}</td>'
    return f'<tr style="background:none;{look}">{head}{rest}</tr>'
