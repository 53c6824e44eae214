"""A report in a terminal and as a fragment."""

import io
from dataclasses import replace

import pytest
from results.report_sample import REMOVALS, report, standings, table
from rich.console import Console

from attlas.results.support.report_sections import Cell, DataRecord, Figure, ReportTable, Standing
from attlas.views import fragment, render
from attlas.views.kinds.report import interval
from attlas.views.report_words import (
    cell_words,
    claim_words,
    figure_words,
    p_words,
    removals_of,
    standing_rows,
)

HOSTILE = "<img src=x onerror=alert(1)>\x1b[31m"


def bare():
    """A report of which only the answer is there."""
    return report(
        data=DataRecord("nothing", 1),
        findings=(),
        table=ReportTable(),
        standings=(),
        panels=(),
        agreement=None,
        removals=(),
        unusual=(),
        examples=(),
        trials=(),
        plausibility=None,
        does_not_show=(),
        settings={},
        versions={},
        costs=(),
        command="",
    )


def hostile():
    made = report()
    first = table().rows[0]
    return report(
        model=HOSTILE,
        command=HOSTILE,
        data=DataRecord(HOSTILE, 4, (HOSTILE,), None, {HOSTILE: 1}),
        verdict=replace(made.verdict, sentence=HOSTILE, method=HOSTILE, notes=(HOSTILE,)),
        findings=(replace(made.findings[0], title=HOSTILE, sentence=HOSTILE, claim=HOSTILE),),
        table=replace(table(), rows=(replace(first, method=HOSTILE), *table().rows[1:])),
        standings=tuple(replace(each, method=HOSTILE) for each in standings()),
        examples=(replace(made.examples[0], tokens=(HOSTILE,) * 9, point=HOSTILE),),
        panels=tuple(
            replace(each, lines=(replace(each.lines[0], method=HOSTILE),), axis=HOSTILE)
            for each in made.panels
        ),
        agreement=replace(made.agreement, methods=(HOSTILE,) * 18),
        settings={HOSTILE: HOSTILE},
    )


def in_terminal(made, **options):
    console = Console(file=io.StringIO(), width=80, color_system=None, **options)
    console.print(render(made.payload()))
    return console.file.getvalue()


@pytest.mark.parametrize(
    ("figure", "span", "mark", "drawn"),
    [
        (Figure(0.5, 0.25, 0.75), (0.0, 1.0), 0.0, "┼─━●━──"),
        (Figure(0.0, -0.5, 0.5), (-1.0, 1.0), None, "──━●━──"),
        (Figure(0.0), (-1.0, 1.0), -1.0, "┼──●───"),
        (Figure(None), (0.0, 1.0), 0.5, "───┼───"),
        (Figure(3.0, 2.0, 4.0), (0.0, 1.0), None, "──────●"),
    ],
)
def test_an_interval_is_drawn_in_letters(figure, span, mark, drawn):
    given = {"value": figure.value, "low": figure.low, "high": figure.high, "n": None}
    assert interval(given, span, mark, 7) == drawn


def test_a_figure_in_words():
    assert figure_words({"value": -0.5, "low": -1.0, "high": 0.25, "n": 1}) == (
        "−0.50 (−1.00 to 0.25), 1 text"
    )
    assert figure_words({"value": None, "low": None, "high": None, "n": None}) == "–"


@pytest.mark.parametrize(
    ("p", "words"),
    [
        (0.0001, "p < .001"),
        (0.001, "p = .001"),
        (0.0404, "p = .040"),
        (0.0625, "p = .063"),
        (0.1, "p = .100"),
        (0.9999, "p = 1"),
        (1, "p = 1"),
    ],
)
def test_a_p_value_in_words(p, words):
    assert p_words(p) == words


def test_a_claim_says_over_how_many_findings_it_was_adjusted():
    made = report().payload()
    assert claim_words(made["findings"][0], made) == (
        "raw_attention above shuffled scores, on 200 texts held out: p = .003 after Holm over 3 "
        "findings"
    )
    assert claim_words(made["findings"][1], made) == ""
    alone = report(findings=report().findings[:2], plausibility=None).payload()
    assert claim_words(alone["findings"][0], alone).endswith("after Holm over 1 finding")


@pytest.mark.parametrize(
    ("cell", "words"),
    [
        (Cell(Figure(0.123)), "0.12"),
        (Cell(Figure(-1.0), best=True), "★ −1.00"),
        (Cell(Figure(None), note="circular"), "circular"),
        (Cell(Figure(None), note="not applicable: no marks"), "–"),
        (Cell(Figure(0.5), note="on 20 texts only"), "0.50?"),
    ],
)
def test_a_cell_in_words(cell, words):
    row = replace(table().rows[0], cells=(cell,))
    made = report(table=ReportTable(table().columns[:1], (row,))).payload()
    assert cell_words(made["table"]["rows"][0]["cells"][0]) == words


def test_methods_stand_from_the_highest_mean_down():
    given = [("low", 0.1, 0.3), ("high", 0.9, 0.1), ("none", None, None)]
    made = [
        Standing(method, "V", removal, Figure(value))
        for method, *values in given
        for removal, value in zip(REMOVALS, values, strict=False)
    ]
    rows = standing_rows(report(standings=tuple(made)).payload())
    assert [(method, family, len(row)) for method, family, row in rows] == [
        ("high", "V", 2),
        ("low", "V", 2),
        ("none", "V", 2),
    ]


def test_a_terminal_of_80_columns_shows_the_answer_first():
    shown = in_terminal(report())
    lines = shown.splitlines()
    assert all(len(line.rstrip()) <= 80 for line in lines)
    assert "✕ NOT SUPPORTED" in lines[:5]
    order = ["May attention", "NOT SUPPORTED", "On these texts", "The weights reach", "Agreement"]
    order += ["Where each method stands", "All methods, removal by delete", "Left out", "seed 0"]
    places = [shown.index(words) for words in order]
    assert places == sorted(places)
    assert "0.24 (0.17 to 0.31), 200 texts" in shown
    assert "held out: p = .003 after Holm over 3 findings" in " ".join(shown.split())
    assert shown.count("after Holm") == 3
    assert "12 × empty text, 3 × longer than 512 tokens" in shown
    assert "removal by mask, removal by knock_out" in shown


def test_the_table_in_a_terminal_has_the_first_removal():
    lines = in_terminal(report()).splitlines()
    at = next(place for place, line in enumerate(lines) if line.startswith("All methods"))
    rows = {line.split()[0]: line.split()[1:] for line in lines[at + 5 : at + 26]}
    assert len(rows) == 21 and list(rows)[-3:] == ["shuffled", "position", "ceiling"]
    assert rows["kernel_shap"][::2] == ["★"] * 5
    assert rows["leave_one_out"][-1] == "circular"
    frame = report().to_pandas()
    mine = frame[(frame["method"] == "alti") & (frame["removal"] == "delete")]
    assert rows["alti"] == [f"{value:.2f}".replace("-", "−") for value in mine["value"]]


def test_five_removals_still_fit():
    names = ("delete", "mask", "pad", "zero_embedding", "knock_out")
    made = [Standing("globenc", "V", name, Figure(0.5, -0.4, 0.6)) for name in names]
    shown = in_terminal(report(standings=tuple(made)))
    assert all(len(line.rstrip()) <= 80 for line in shown.splitlines())


def test_measures_that_remove_nothing_come_last():
    assert removals_of(report().payload()) == ["delete", "mask", "knock_out", ""]


def test_colour_can_be_had_and_left_out():
    console = Console(file=io.StringIO(), width=80, force_terminal=True, color_system="truecolor")
    console.print(render(report().payload()))
    assert "\x1b[1m" in console.file.getvalue()
    assert "\x1b" not in in_terminal(report())


def test_an_answer_alone_is_shown_too():
    assert "NOT SUPPORTED" in in_terminal(bare())
    assert "not supported" in fragment(bare().payload())


def test_hostile_texts_are_only_text():
    assert "\x1b" not in in_terminal(hostile())
    made = fragment(hostile().payload())
    assert "<img" not in made and "&lt;img" in made and "<script" not in made


def test_a_fragment_has_the_answer_the_findings_and_the_table():
    made = fragment(report().payload())
    assert "✕ not supported" in made
    assert "The methods do not agree" in made and "0.31 (0.29 to 0.33), 400 texts" in made
    assert made.count(">p = .003</td>") == 1 and "τ below 0.5, two-sided" in made
    assert made.count("★") == 12  # of two removals by five measures, and two of plausibility
    assert "<script" not in made


def test_how_strange_texts_without_tokens_are_is_told_with_what_to_do():
    shown = in_terminal(report())
    told = shown[shown.index("Are texts without some tokens strange to the model?") :]
    assert "0.5: no stranger than the same texts cut short" in told
    lines = told.splitlines()
    delete, mask = (
        next(number for number, line in enumerate(lines) if line.startswith(f"{removal} "))
        for removal in ("delete", "mask")
    )
    assert "0.86" in lines[mask]
    assert lines[mask + 1].strip().startswith("such texts are strange to this model")
    assert mask == delete + 1
    assert "strange to the model" not in in_terminal(bare())
