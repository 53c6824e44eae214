"""A report in a terminal and as a fragment."""

import io
import re
from dataclasses import replace

import pytest
from results.report_sample import REMOVALS, report, standings, table
from rich.console import Console

from attlas.results.support.report_sections import Cell, DataRecord, Figure, ReportTable, Standing
from attlas.views import fragment, render
from attlas.views.report_verdict import steps
from attlas.views.report_words import (
    best_methods,
    cell_words,
    figure_words,
    grid_cells,
    group_cells,
    named_tokens,
    number,
    pulls,
    removals_of,
    standing_rows,
)
from attlas.views.terminal import interval

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


def hostile_verdict():
    made = report().verdict
    first = next(iter(made.bounds.values()))
    bounds = {HOSTILE: replace(first, control=HOSTILE, reference=HOSTILE, why=HOSTILE)}
    return replace(
        made,
        sentence=HOSTILE,
        plain=f"{HOSTILE}. {HOSTILE}",
        which_way=HOSTILE,
        next_step=f"{HOSTILE} `{HOSTILE}`",
        method=HOSTILE,
        notes=(HOSTILE,),
        bounds=bounds,
        directions=tuple(replace(each, removal=HOSTILE) for each in made.directions),
        by_group=tuple(replace(each, group=HOSTILE, removal=HOSTILE) for each in made.by_group),
        readings=tuple(replace(each, method=HOSTILE) for each in made.readings),
    )


def hostile():
    made = report()
    first = table().rows[0]
    return report(
        model=HOSTILE,
        command=HOSTILE,
        data=DataRecord(HOSTILE, 4, (HOSTILE,), None, {HOSTILE: 1}),
        verdict=hostile_verdict(),
        findings=(replace(made.findings[0], title=HOSTILE, sentence=HOSTILE),),
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
    console.print(render({**made.payload(), "whole": True}))
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


def test_the_word_of_other_thresholds_is_a_sign():
    assert grid_cells(report().payload()) == [
        ["floor / margin", "0.05", "0.1", "0.15"],
        ["0.2", "◐", "◐", "◐"],
        ["0.3", "✕", "✕", "✕"],
    ]


def test_a_group_says_in_how_many_texts_there_is_nothing_to_find():
    assert group_cells(report().payload()) == [
        ["texts", "how many", "delete", "mask"],
        [
            "predicted NEGATIVE",
            "180",
            "0.20 (0.10 to 0.30), nothing to find in 12",
            "0.22 (0.12 to 0.32)",
        ],
        ["predicted POSITIVE", "220", "0.27 (0.17 to 0.37)", "–"],
    ]


def test_a_token_that_speaks_against_the_prediction_is_below_zero():
    (example,) = report().payload()["examples"]
    assert pulls(example) == [0.01, -0.25, -0.02, -0.1, -0.08, 0.02, 0.0, 0.3, 0.5]
    named = named_tokens(example, pulls(example), signed=True)
    assert named == "works +0.50 · nevertheless +0.30 · clumsy −0.25 · overwrought −0.18"


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


def test_the_best_methods_are_named_in_per_cent_and_one_without_a_figure_is_not():
    given = {"good": 0.894, "better": 0.91, "none": None, "rarest": 0.99}
    made = [
        Standing(name, "control" if name == "rarest" else "V", "delete", Figure(value))
        for name, value in given.items()
    ]
    assert best_methods(report(standings=tuple(made)).payload()) == (
        "Find most of what matters: better 91 %, good 89 %"
    )
    assert best_methods(report(standings=(made[2],)).payload()) == ""


def test_a_terminal_shows_the_answer_in_a_few_lines():
    console = Console(file=io.StringIO(), width=80, color_system=None)
    console.print(render(report().payload()))
    lines = console.file.getvalue().splitlines()
    assert len(lines) <= 10 and all(len(line) <= 80 for line in lines)
    told = " ".join(" ".join(lines).split())
    made = report()
    order = [
        f"{made.model} on {made.data.name}",
        "Find most of what matters: ",
        "✕ NOT SUPPORTED The",
    ]
    *first, last = made.verdict.next_step.partition("To see whether")
    assert last and last not in told  # what one text needs is in the report
    places = [told.index(words) for words in [*order, first[0].strip()]]
    assert places == sorted(places)
    assert "position" not in told  # a control is no method to use
    assert re.search(r"matters: \w+ \d+ %", told)


def test_the_letters_of_families_are_explained_where_they_stand():
    shown = in_terminal(report())
    letters = shown[shown.index("How much of what matters each method") :].splitlines()[2]
    assert letters.startswith("W the weights  V with values") and len(letters.rstrip()) <= 80


def test_the_first_screen_of_a_terminal_goes_from_the_question_to_what_to_do():
    lines = in_terminal(report()).splitlines()
    assert all(len(line.rstrip()) <= 80 for line in lines)
    first = " ".join(" ".join(lines[:40]).split())
    made = report().verdict
    order = [
        "May attention be read",
        "✕ NOT SUPPORTED: No The words that attention marks are mostly",
    ]
    order += [each.title for each in report().findings[:3]]
    order += ["decides.: the model says POSITIVE (0.87)"]
    order += ["a clumsy, overwrought film that nevertheless works", "Weights: , 0.20 · film 0.06"]
    order += ["What matters", "clumsy −0.25", "Licence: may not be read as where. The largest"]
    order += ["What to do next 1. Do not show heat maps of the weights alone."]
    order += ["2. Use gradient instead, which finds more: `attlas explain", "3. To see whether"]
    order += [f"Where? {made.sentence[:60]}"]
    places = [first.index(words) for words in order]
    assert places == sorted(places)
    assert report().findings[3].title not in first


def test_a_report_without_everyday_words_says_its_verdict():
    made = report(verdict=replace(report().verdict, plain=""))
    lines = in_terminal(made).splitlines()
    assert lines[3] == "✕ NOT SUPPORTED"
    assert lines[4] == "The attention weights do not show where the prediction rests."


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("One. Two: `a. B c`. Three.", ["One.", "Two: `a. B c`.", "Three."]),
        (
            "Audit 150 texts: `attlas audit`. Until then.",
            ["Audit 150 texts: `attlas audit`.", "Until then."],
        ),
        ("Only one", ["Only one"]),
    ],
)
def test_every_sentence_is_a_step_but_not_within_a_command(text, expected):
    made = report(verdict=replace(report().verdict, next_step=text))
    assert steps(made.payload()) == expected


def test_a_terminal_shows_the_evidence_below():
    shown = in_terminal(report())
    order = ["May attention", "Attention finds less than half", "Where?", "How tokens are removed"]
    order += ["Agreement"]
    order += ["How the answer was reached", "How much of what matters each", "All methods, removal"]
    order += ["Left out", "seed 0"]
    places = [shown.index(words) for words in order]
    assert places == sorted(places)
    assert "0.24 (0.17 to 0.31), 200 texts" in shown
    assert "12 × empty text, 3 × longer than 512 tokens" in shown
    assert "removal by mask, removal by knock_out" in shown
    one_line = " ".join(shown.split())
    assert "delete speaks against: they find at most 29 % of what matters" in one_line
    for words in ("more than another text's raw_a", "more than position", "more than gradient"):
        assert words in shown
    assert "moves the answer by 0.12 (0.09 to 0.15), 400 texts; 0.02 is the least" in one_line
    assert "80 % of the splits give this word" in one_line
    assert "of what the weights highlight, 0.61 (0.58 to 0.64), 400 texts" in one_line
    assert "attn_lrp 0.66 (0.59 to 0.73) 0.42 (0.33 to 0.51) ✓" in one_line


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
    console.print(render({**report().payload(), "whole": True}))
    assert "\x1b[1m" in console.file.getvalue()
    assert "\x1b" not in in_terminal(report())


def test_an_answer_alone_is_shown_too():
    assert "NOT SUPPORTED" in in_terminal(bare())
    assert "not supported" in fragment(bare().payload())


def test_hostile_texts_are_only_text():
    assert "\x1b" not in in_terminal(hostile())
    made = fragment(hostile().payload())
    assert "<img" not in made and "&lt;img" in made and "<script" not in made


def test_a_fragment_has_the_answers_an_example_the_evidence_and_the_table():
    made = fragment(report().payload())
    order = ["✕ not supported: No", "The words that attention marks", "The methods do not agree"]
    order += ["The comma is attended to", "what matters (mask)", "<div>1. Do not show heat maps"]
    order += ["<b>Where?</b> The attention", "<b>Which way?</b> The weights"]
    order += ["How the answer was reached", "comprehensiveness delete"]
    places = [made.index(words) for words in order]
    assert places == sorted(places)
    assert "0.31 (0.29 to 0.33), 400 texts" in made
    assert "Licence: may not be read as where." in made and "∅" not in made
    assert ": <code>attlas explain --method gradient TEXT</code>." in made
    assert made.count(">clumsy</span>") == 2  # by the weights, and by what matters
    assert ">✕</td>" in made and "nothing to find in 12" in made
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


@pytest.mark.parametrize(
    ("value", "shown"), [(-0.004, "0.00"), (-0.006, "−0.01"), (0.0, "0.00"), (None, "–")]
)
def test_nothing_is_not_below_zero(value, shown):
    assert number(value) == shown
