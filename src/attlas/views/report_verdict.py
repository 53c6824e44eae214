"""The verdict of a report: its answers, one example, and the evidence behind them."""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from rich.table import Table
from rich.text import Text

from attlas.views import report_words as words
from attlas.views.markup import MONO, QUIET, as_text, chip, plain_table
from attlas.views.terminal import fit, interval, style_of, text_table
from attlas.views.units import gap, limit, visible

Payload = Mapping[str, Any]
_LABEL, _BAR = 32, 20  # the widths of what a figure is about, and of its interval
_LEGEND = f"The word that other thresholds would give: {words.SIGNS}"
_GROUPS = "What the weights find, by kind of text"
_READINGS = "Readings that use more than the weights: what they find, and how much more"
_SENTENCE_END = re.compile(r"(?<=\.) (?=[A-Z](?:[^`]*`[^`]*`)*[^`]*$)")  # not within backticks


def short_lines(payload: Payload) -> Iterator[Text]:
    """The answer in a few lines: the texts, the word, the best methods and what to do next."""
    verdict = payload["verdict"]
    word, lead = verdict["word"], visible(verdict["sentence"]).partition(":")[0].rstrip(".")
    yield Text(words.facts(payload), style="dim")
    if best := words.best_methods(payload):
        yield Text(best)
    yield Text.assemble(
        (f"{words.MARKS.get(word, '·')} {visible(word).upper()}", "bold"), f" {lead}."
    )
    first = steps(payload)
    yield Text(" ".join(first[:-1] or first))  # the report has the last one too


def answer_lines(payload: Payload) -> Iterator[Text]:
    """The question, the word and the answer in everyday words, in a terminal."""
    word, (short, rest) = payload["verdict"]["word"], words.short_answer(payload)
    yield Text(visible(payload["question"]))
    yield Text(words.facts(payload), style="dim")
    yield Text()
    said = f"{words.MARKS.get(word, '·')} {visible(word).upper()}"
    yield Text(f"{said}: {short}" if short else said, style="bold")
    yield Text(rest)


def steps(payload: Payload) -> list[str]:
    """What to do next: every sentence is a step."""
    return _SENTENCE_END.split(visible(payload["verdict"]["next_step"]))


def step_lines(payload: Payload) -> Iterator[Text]:
    """What to do next, and the two answers in full, in a terminal."""
    yield from (Text(), Text("What to do next", style="bold"))
    for number, step in enumerate(steps(payload), 1):
        yield Text(f"{number}. {step}")
    yield Text()
    for heading, sentence in words.answers(payload).items():
        yield Text.assemble((heading, "bold"), f" {sentence}")


def example_lines(payload: Payload) -> Iterator[Text]:
    """A typical text, coloured by the weights, and what matters in it."""
    example = words.first_example(payload)
    if example is None:
        return
    yield from (Text(), Text(words.example_facts(example), style="bold"))
    scores = example["readings"][0]["scores"] if example["readings"] else None
    yield _coloured(example, scores or words.pulls(example), signed=scores is None)
    if scores:
        yield Text(f"Weights: {words.named_tokens(example, scores, signed=False)}")
    matters = words.named_tokens(example, words.pulls(example), signed=True)
    yield Text(f"What matters (− against the prediction): {matters}")
    if licence := words.licence_words(example):
        yield Text(licence)


def _coloured(example: Payload, scores: Sequence[float], *, signed: bool) -> Text:
    units, line = words.example_words(example, scores), Text()
    for before, unit in zip([None, *units], units, strict=False):
        line.append(gap(before, unit))
        line.append(unit.text, style=style_of(unit, limit(units), signed))
    return line


def evidence_lines(payload: Payload) -> Iterator[Text | Table]:
    """The figures under each removal, and what else the verdict rests on."""
    yield from (Text(), Text("How the answer was reached", style="bold"))
    for removal, bounds in payload["verdict"]["bounds"].items():
        yield Text(_removal_words(removal, bounds))
        for label, figure, mark in words.bound_rows(payload, bounds):
            drawn = interval(figure, (-1.0, 1.0), mark, _BAR)
            told = words.figure_words({**figure, "n": None})
            yield Text(f"  {fit(label, _LABEL)} {drawn}  {told}")
    yield from (Text(sentence) for sentence in words.evidence_words(payload))
    for title, cells in _tables(payload):
        yield from (Text(), Text(title, style="dim"), text_table(cells))


def _removal_words(removal: str, bounds: Payload) -> str:
    finding = {"open": "leaves it open"}.get(bounds["finding"], f"speaks {bounds['finding']}")
    return f"{visible(removal)} {finding}: {visible(bounds['why'])}"


def _tables(payload: Payload) -> Iterator[tuple[str, list[list[str]]]]:
    if grid := words.grid_cells(payload):
        yield _LEGEND, grid
    if groups := words.group_cells(payload):
        yield _GROUPS, groups
    if readings := payload["verdict"]["readings"]:
        rows = [
            [
                visible(each["method"]),
                words.figure_words({**each["s"], "n": None}),
                words.figure_words({**each["gain"], "n": None}),
                "✓" if each["better"] else "–",
            ]
            for each in readings
        ]
        yield _READINGS, [["method", "finds", "more than the weights", "surely"], *rows]


def answer_fragments(payload: Payload) -> Iterator[str]:
    """The question, the word and the answer in everyday words, as HTML."""
    word, (short, rest) = payload["verdict"]["word"], words.short_answer(payload)
    yield f'<div style="{QUIET}">{as_text(words.facts(payload))}</div>'
    yield f"<div>{as_text(payload['question'])}</div>"
    said = f"{as_text(word)}: {as_text(short)}" if short else as_text(word)
    yield (
        '<div style="font-size:24px;line-height:32px;font-weight:600">'
        f"{words.MARKS.get(word, '·')} {said}</div>"
    )
    yield f"<div>{as_text(rest)}</div>" if rest else ""


def step_fragments(payload: Payload) -> Iterator[str]:
    """What to do next, and the two answers in full, as HTML."""
    yield '<div style="margin-top:8px"><b>What to do next</b></div>'
    for number, step in enumerate(steps(payload), 1):
        shown = re.sub("`([^`]+)`", r"<code>\1</code>", as_text(step))
        yield f"<div>{number}. {shown}</div>"
    for heading, sentence in words.answers(payload).items():
        yield f'<div style="margin-top:4px"><b>{as_text(heading)}</b> {as_text(sentence)}</div>'


def example_fragments(payload: Payload) -> Iterator[str]:
    """A typical text, coloured by the weights and by what matters, as HTML."""
    example = words.first_example(payload)
    if example is None:
        return
    yield f'<div style="margin-top:8px"><b>{as_text(words.example_facts(example))}</b></div>'
    rows = [(f"what matters ({example['removal']})", words.pulls(example), True)]
    if example["readings"]:
        first = example["readings"][0]
        rows.insert(0, (first["method"], first["scores"], False))
    for name, scores, signed in rows:
        yield f'<div style="{QUIET}">{as_text(name)}</div>'
        yield f'<div style="line-height:1.9;{MONO}">{_chips(example, scores, signed)}</div>'
    if licence := words.licence_words(example):
        yield f"<div>{as_text(licence)}</div>"


def _chips(example: Payload, scores: Sequence[float], signed: bool) -> str:
    units = words.example_words(example, scores)
    return "".join(
        gap(before, unit) + chip(unit, limit(units), signed)
        for before, unit in zip([None, *units], units, strict=False)
    )


def evidence_fragments(payload: Payload) -> Iterator[str]:
    """The figures under each removal, and what else the verdict rests on, as HTML."""
    yield '<div style="margin-top:8px"><b>How the answer was reached</b></div>'
    for removal, bounds in payload["verdict"]["bounds"].items():
        yield f"<div>{as_text(_removal_words(removal, bounds))}</div>"
        rows = words.bound_rows(payload, bounds)
        yield plain_table([label, words.figure_words(figure)] for label, figure, _ in rows)
    for sentence in words.evidence_words(payload):
        yield f"<div>{as_text(sentence)}</div>"
    for title, cells in _tables(payload):
        yield f'<div style="{QUIET}">{as_text(title)}</div>{plain_table(cells)}'
