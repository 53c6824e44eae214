"""A report as a record: it is saved and read whole, and sections that do not fit are refused."""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace

import pytest
from results.report_sample import TOKENS, panel, report, sample, table

from attlas.errors import ResultFileError, UnknownNameError, UsageError
from attlas.results import Maps, Report
from attlas.results.support.files import rebuild, write_record
from attlas.results.support.report_sections import Cell, Figure, Finding, Truth
from attlas.results.support.verdict import Bounds
from attlas.version import __version__


@dataclass(frozen=True)
class Leaf:
    number: float | int | None


@dataclass(frozen=True)
class Branch:
    leaf: Leaf
    maybe: Leaf | None
    leaves: tuple[Leaf, ...]
    pair: tuple[float, str]
    named: Mapping[str, tuple[Leaf, ...]]
    plain: Mapping[str, int]


def test_records_within_records_are_records_again():
    leaf = Leaf(0.5)
    for maybe in (None, Leaf(None)):
        branch = Branch(leaf, maybe, (leaf, Leaf(2)), (1.0, "x"), {"a": (leaf,)}, {"b": 1})
        assert rebuild(Branch, json.loads(json.dumps(asdict(branch)))) == branch


def test_a_pair_of_three_is_refused():
    written = asdict(Branch(Leaf(1), None, (), (1.0, "x"), {}, {}))
    with pytest.raises(ValueError, match="longer"):
        rebuild(Branch, {**written, "pair": [1.0, "x", "y"]})


def test_a_report_comes_back_whole():
    made = report()
    back = Report.from_dict(json.loads(json.dumps(made.to_dict(), allow_nan=False)))
    assert back.to_dict() == made.to_dict()
    assert back.verdict == made.verdict
    assert isinstance(back.verdict.bounds["mask"], Bounds)
    assert back.findings == made.findings and back.data == made.data
    assert back.examples == made.examples and back.panels == made.panels
    assert isinstance(back.table.rows[0].cells[0], Cell)


def older(record):
    """A report as it was when the verdict tested signs, and findings had p-values."""
    verdict = {**record["verdict"], "reference": "gradient", "chosen_on": 200, "tested_on": 200}
    for name in ("which_way", "next_step", "texts"):
        del verdict[name]
    return {**record, "verdict": verdict, "versions": {"attlas": "0.0.9"}}


def test_a_report_of_an_older_version_is_one_clear_line(tmp_path):
    said = rf"made by Attlas 0\.0\.9, .* this version \({__version__}\) .*: audit again$"
    with pytest.raises(ResultFileError, match=said):
        Report.from_dict(older(report().to_dict()))
    path = write_record(tmp_path / "old", "report", older(report().to_dict()), {})
    with pytest.raises(ResultFileError, match=said):
        Report.load(path)
    with pytest.raises(ResultFileError, match="an unknown version"):
        Report.from_dict({"model": "m"})


def test_a_report_is_saved_and_read_again(tmp_path):
    path = report().save(tmp_path / "report.safetensors")
    assert Report.load(path).to_dict() == report().to_dict()
    with pytest.raises(ResultFileError, match="holds 'report', not 'maps'"):
        Maps.load(path)


def test_a_number_that_is_none_is_none_everywhere():
    finding = replace(report().findings[0], figure=Figure(float("nan"), float("-inf"), 1.0, 3))
    made = report(findings=(finding,), settings={"limit": float("inf")}).payload()
    assert made["findings"][0]["figure"] == {"value": None, "low": None, "high": 1.0, "n": 3}
    json.dumps(made, allow_nan=False)
    ceiling = next(row for row in made["table"]["rows"] if row["method"] == "ceiling")
    assert [cell["figure"]["value"] is None for cell in ceiling["cells"][:9:3]] == [
        False,
        False,
        True,
    ]


def test_the_table_is_a_frame_with_a_row_for_each_figure():
    frame = report().to_pandas()
    assert len(frame) == 21 * 17
    one = frame[(frame["method"] == "kernel_shap") & (frame["measure"] == "log_odds")]
    assert list(one["removal"]) == ["delete", "mask", "knock_out"]
    assert list(one["best"]) == [True, True, False]
    assert set(one["better"]) == {"lower"} and set(one["family"]) == {"reference"}
    assert (one["low"] < one["value"]).all() and (one["value"] < one["high"]).all()
    circular = frame[frame["note"] == "circular"]
    assert set(circular["method"]) == {"leave_one_out"} and circular["value"].isna().all()


def test_a_report_without_a_table_has_an_empty_frame():
    made = report(table=replace(table(), columns=(), rows=()))
    assert made.to_pandas().empty


def test_the_page_is_one_file(tmp_path):
    path = report().to_html(tmp_path / "report.html")
    text = path.read_text("utf-8")
    assert "<title>not supported · minilm-sst2 on reviews.csv</title>" in text
    assert text.count("<script") == 2


def test_it_says_what_it_is():
    assert repr(report()) == "Report(minilm-sst2 on reviews.csv: not supported)"


def test_what_does_not_fit_is_refused():
    row = table().rows[0]
    with pytest.raises(UsageError, match="raw_attention: 16 cells, but 17 columns"):
        replace(table(), rows=(replace(row, cells=row.cells[1:]),))
    curves = panel("sufficiency", "mask")
    with pytest.raises(UsageError, match="raw_attention: 19 points, but 2 places"):
        replace(curves, places=(0.5, 1.0))
    with pytest.raises(UsageError, match="pull: 1 scores, but 9 tokens"):
        replace(sample("a point"), truth=Truth((0.0,) * 9, (0.0,)))
    with pytest.raises(UsageError, match="raw_attention: 9 scores, but 8 tokens"):
        replace(sample("a point"), tokens=TOKENS[1:])
    with pytest.raises(UnknownNameError, match="unknown section 'standings': did you mean 'stand"):
        Finding("title", "sentence", Figure(0.5), "standings")
    with pytest.raises(UnknownNameError, match="unknown section"):
        replace(sample("a point"), section="nowhere")


def test_words_that_leave_out_a_token_are_refused():
    with pytest.raises(UsageError, match="do not hold each of 9 tokens in order"):
        replace(sample("a point"), words=((0, 1), (3,)))


def test_the_tokens_of_an_example_are_its_text():
    assert "".join(sample("").tokens) == "a clumsy, overwrought film that nevertheless works"
