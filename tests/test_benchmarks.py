"""Comparisons: rows and their goals, what a run keeps of earlier ones, and the page of them."""

import json
import re
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

import attlas
from attlas.progress import Step

BENCHMARKS = Path(__file__).parents[1] / "benchmarks"


@pytest.fixture
def scripts(monkeypatch):
    """The modules of the folder, as its scripts import them."""
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    names = ("comparing", "rows", "tables", "run", "costs", "costs_page", "offloading", "sizing")
    before = set(sys.modules)
    yield SimpleNamespace(**{name: __import__(name) for name in names})
    for name in set(sys.modules) - before:
        if (BENCHMARKS / f"{name}.py").is_file() or name.startswith("comparisons"):
            del sys.modules[name]


def record(comparison, device="cpu", small=False, **changed):
    fields = {"name": "work", "against": "loop", "ours": 0.5, "peer": 2.0, "inner": 0.25}
    empty = dict.fromkeys(("difference", "goal", "megabytes", "peer_megabytes", "goal_megabytes"))
    facts = {"machine": "a card", "versions": {"torch": "9"}, "date": "2026-01-01", "load": 0.5}
    place = {"comparison": comparison, "device": device, "small": small}
    return {**place, **facts, **fields, **empty, "unit": "", "note": "", "reached": None, **changed}


def test_the_page_says_what_the_rows_say(scripts):
    tables = scripts.tables
    text = tables.PAGE.read_text(encoding="utf-8")
    assert text.count("<!-- table: ") == len(tables.DEVICES)
    assert tables.page(text, tables.read(tables.RESULTS)) == text


def test_the_page_says_what_the_costs_are(scripts):
    costs = scripts.costs_page
    text = costs.PAGE.read_text(encoding="utf-8")
    rows, offloaded = costs.read(costs.COSTS), costs.read(costs.OFFLOADED)
    assert rows and offloaded and costs.page(text, rows, offloaded) == text
    assert all(each["difference"] <= 1e-5 for each in offloaded if "difference" in each)


def test_a_page_says_what_is_not_measured_and_with_what_it_is(scripts):
    costs, sizing = scripts.costs_page, scripts.sizing
    text = costs.page(costs.PAGE.read_text(encoding="utf-8"), [], [])
    for place, device in (("a GPU", "cuda"), ("a processor", "cpu")):
        for script in ("costs", "offloading"):
            command = f"python benchmarks/{script}.py --device {device}"
            assert f"On {place}, this is not measured yet: `{command}`." in text
            assert (BENCHMARKS / f"{script}.py").is_file()
    nothing = [f"On {place}, this is not measured yet." for place in ("a GPU", "a processor")]
    assert list(sizing.workers([])) == nothing
    assert list(sizing.sizing([], 4)) == nothing[:1]


def test_no_table_of_the_pages_is_empty():
    for name in ("cluster", "performance"):
        text = (BENCHMARKS.parent / "docs" / f"{name}.md").read_text(encoding="utf-8")
        for part in re.findall(r"<!-- (?!end)[^>]* -->\n(.*?)<!-- end", text, re.S):
            rows = part.strip().splitlines()
            assert rows and not (rows[0].startswith("|") and len(rows) < 3), (name, rows)


def test_growth_is_an_exponent(scripts):
    sizes = [(layers, tokens) for layers in (2, 4, 8) for tokens in (10, 20, 40)]
    rows = [
        {"method": "a", "layers": n, "tokens": t, "seconds": 3 * n * t**2, "megabytes": t / 10}
        for n, t in sizes
    ]
    growths = [scripts.costs_page.power(rows, *each) for each in scripts.costs_page.GROWTHS]
    assert growths == ["2.0", "1.0", "1.0"]
    assert scripts.costs_page.cells(rows) == [(2, 10), (2, 40), (8, 10), (8, 40)]
    assert scripts.costs_page.cells(rows[:4]) == [(2, 10), (2, 40), (4, 10)]


def test_new_rows_replace_those_of_their_comparison_device_and_size_alone(scripts):
    known = [record("a", "cuda"), record("a", name="old"), record("b"), record("a", small=True)]
    found = scripts.tables.merged(known, [record("a", name="one"), record("a", name="two")])
    assert [(each["device"], each["small"], each["name"]) for each in found] == [
        *[("cpu", False, "one"), ("cpu", False, "two"), ("cpu", True, "work")],
        *[("cpu", False, "work"), ("cuda", False, "work")],
    ]


def test_a_row_of_a_comparison_that_did_not_end_replaces_its_like_alone(scripts):
    known = [record("a", name="one"), record("a", name="two"), record("b")]
    new = record("a", name="two", ours=9.0, ended=False)
    found = scripts.tables.merged(known, [new])
    assert [(each["comparison"], each["name"], each["ours"]) for each in found] == [
        *[("a", "one", 0.5), ("a", "two", 9.0), ("b", "work", 0.5)],
    ]
    (left, _) = scripts.tables.merged(found, [{**new, "ended": True}])
    assert left["name"] == "two"


def test_small_rows_are_shown_where_there_are_no_others(scripts):
    rows = [record("a", small=True), record("a", name="full"), record("b", small=True)]
    assert scripts.tables.shown(rows, "cpu") == rows[1:]
    assert scripts.tables.shown(rows, "cuda") == []


def test_a_table_says_how_fast_and_whether_the_goal_is_reached(scripts):
    slower = record("b", ours=3.0, inner=None, goal=[1.4, 0.002], reached=False, difference=1e-6)
    *_, fast, slow = scripts.tables.markdown([record("a"), slower])
    assert fast == "| work | loop | 500 ms | 2 s | 4 × as fast | 8 × as fast |  |  |"
    assert "takes 1.5 × |  | 1.0e-06 | at most 1.4 × + 2 ms: **not reached**" in slow
    (*_, lost) = scripts.tables.markdown([record("a", ours=None, note="out of memory")])
    assert "| loop; out of memory | did not end | 2 s | – |" in lost


def test_a_section_says_where_its_rows_are_from(scripts):
    rows = [record("a", "cuda"), record("b", "cuda", load=3.0), record("c", "cuda", small=True)]
    told = list(scripts.tables.section(rows, "cuda"))
    assert told[-2] == "`a`, `b`: a card, torch 9, 2026-01-01, load of the machine up to 3."
    assert told[-1].startswith("`c`: a card, torch 9, 2026-01-01, `--small`")


@pytest.mark.parametrize(
    ("ours", "megabytes", "reached"),
    [(2.5, 10, True), (2.7, 10, False), (2.5, 30, False), (None, None, False)],
)
def test_a_goal_is_a_factor_some_seconds_and_some_memory(scripts, ours, megabytes, reached):
    bounds = {"goal": (1.2, 0.2), "megabytes": megabytes, "goal_megabytes": 20}
    assert scripts.comparing.Row("a", "b", ours, 2.0, **bounds).reached is reached
    assert scripts.comparing.Row("a", "b", ours, 2.0).reached is None


def test_a_run_goes_on_after_a_comparison_that_fails(scripts, monkeypatch, tmp_path, capsys):
    def compare(setup):
        assert (setup.device, setup.small, setup.size(9, 1)) == ("cpu", True, 1)
        yield scripts.comparing.Row("work", "loop", *setup.in_turns(list, dict), goal=(1.0, 0.0))

    def fail(setup):
        raise RuntimeError("no such peer")

    for name, function in {"fails": fail, "works": compare}.items():
        module = SimpleNamespace(compare=function)
        monkeypatch.setitem(sys.modules, f"comparisons.{name}", module)
    monkeypatch.setattr(scripts.run, "COMPARISONS", ("fails", "works"))
    out = tmp_path / "rows.json"
    monkeypatch.setattr(sys, "argv", ["run.py", "--small", "--out", str(out)])
    assert scripts.run.main() == 1
    (row,) = json.loads(out.read_text())
    assert row["ratio"] == row["peer"] / row["ours"]
    assert row["goal"] is row["reached"] is None
    assert row["comparison"] == "works" and row["versions"]["torch"]
    assert "did not end: fails" in capsys.readouterr().err
    assert "no such peer" not in out.read_text()


def test_rows_are_written_as_they_are_made(scripts, monkeypatch, tmp_path):
    out = tmp_path / "rows.json"

    def compare(setup):
        yield scripts.comparing.Row("first", "loop", 1.0, 2.0)
        assert [(each["name"], each["ended"]) for each in scripts.rows.read(out)] == [
            ("first", False)
        ]
        yield scripts.comparing.Row("second", "loop", 1.0, 2.0)

    monkeypatch.setitem(sys.modules, "comparisons.works", SimpleNamespace(compare=compare))
    monkeypatch.setattr(scripts.run, "COMPARISONS", ("works",))
    monkeypatch.setattr(sys, "argv", ["run.py", "--small", "--missing", "--out", str(out)])
    assert scripts.run.main() == 0
    written = out.read_bytes()
    assert [each["ended"] for each in json.loads(written)] == [True, True]
    monkeypatch.setitem(sys.modules, "comparisons.works", None)  # it would fail
    assert scripts.run.main() == 0 and out.read_bytes() == written
    monkeypatch.setattr(scripts.run, "code", lambda: "another")
    assert scripts.run.main() == 1 and out.read_bytes() == written


def test_costs_go_on_where_they_were_cut_off(scripts, monkeypatch, tmp_path):
    costs, out, asked = scripts.costs, tmp_path / "costs.json", []

    def cell(setup, subject, name, tokens):
        if len(asked) in (2, 4):
            asked.append(None)
            raise KeyboardInterrupt
        asked.append((name, tokens))
        return {"seconds": 0.5, "megabytes": 1.0, "note": ""}

    for name, value in {
        "LAYERS": {"cpu": (1,)},
        "LENGTHS": {"cpu": (2, 3, 4)},
        "cell": cell,
    }.items():
        monkeypatch.setattr(costs, name, value)
    monkeypatch.setattr(costs, "smollm", lambda *_: SimpleNamespace(to=lambda _: None))
    monkeypatch.setattr(costs.attlas, "Subject", lambda *_: None)
    argv = ["costs.py", "--missing", "--only", "raw_attention", "--out", str(out)]
    monkeypatch.setattr(sys, "argv", argv)
    with pytest.raises(KeyboardInterrupt):
        costs.main()
    costs.main()
    assert asked == [("raw_attention", 2), ("raw_attention", 3), None, ("raw_attention", 4)]
    assert [each["tokens"] for each in json.loads(out.read_text())] == [2, 3, 4]


def test_offloading_goes_on_and_loses_no_row(scripts, monkeypatch, tmp_path):
    offloading, out, asked = scripts.offloading, tmp_path / "offloading.json", []

    def measure(setup, folder, known):
        asked.append(set(known))
        for name in ("a", "b"):
            if ("offloaded", name) not in known:
                yield {"method": name, "way": "offloaded", "seconds": len(asked)}
                return

    monkeypatch.setattr(offloading, "measure", measure)
    monkeypatch.setattr(offloading, "smollm", lambda *_: SimpleNamespace(save_pretrained=str))
    monkeypatch.setattr(
        sys, "argv", ["offloading.py", "--layers", "1", "--missing", "--out", str(out)]
    )
    offloading.main()
    offloading.main()
    assert asked == [set(), {("offloaded", "a")}]
    assert [(each["method"], each["seconds"]) for each in json.loads(out.read_text())] == [
        *[("a", 1), ("b", 2)]
    ]


@pytest.mark.slow
def test_a_comparison_runs_as_it_stands(scripts):
    (row,) = scripts.run.run("flow", "cpu", True)
    assert row["difference"] < 1e-6 and row["ours"] > 0


def test_the_page_of_clusters_says_what_the_rows_say(scripts):
    sizing = scripts.sizing
    text = sizing.PAGE.read_text(encoding="utf-8")
    price = float(re.search(r"at ([\d.]+) dollars an hour", text)[1])
    assert sizing.page(text, sizing.read(sizing.ROWS), price) == text
    assert f"sizing.py --price {price:g}" in text


def test_time_and_money_are_texts_by_the_rate(scripts):
    row = {"what": "rate", "device": "cuda", "machine": "a card", "kind": "decoder"}
    row |= {"millions": 6700, "dtype": "bfloat16", "method": "attn_lrp", "tokens": 128, "rate": 5.0}
    *_, line, _, where = scripts.sizing.sizing([row, {**row, "device": "cpu"}], 3.5)
    assert line == (
        "| decoder, 6,700 M, bfloat16 | 128 | `attn_lrp` | 5.00 "
        "| 33 min, $1.94 | 2 days, $194 | 231 days, $19,444 |"
    )
    assert where == "On a card, at 3.5 dollars an hour."


def test_new_rows_of_workers_replace_those_of_their_kind_and_device(scripts):
    row = {"what": "workers", "device": "cpu", "machine": "m", "model": "a", "method": "b"}
    known = [{**row, "workers": 1, "rate": 9.0}, {**row, "device": "cuda", "workers": 1, "rate": 7}]
    new = [{**row, "workers": 1, "rate": 10.0}, {**row, "workers": 4, "rate": 35.0}]
    found = scripts.sizing.merged(known, new)
    lines = list(scripts.sizing.workers(found))
    assert lines[2:4] == ["| m | a, `b` | 1 | 10 | 1.00 × |", "| m | a, `b` | 4 | 35 | 3.50 × |"]
    assert lines[4:] == ["| m, shared | a, `b` | 1 | 7 | 1.00 × |"]
    facts = {"load": 0.5, "date": "2026-01-01", "versions": {"torch": "9"}, "asked": "--each 2"}
    facts["cores"] = 2
    told = list(scripts.sizing.workers([{**each, **facts} for each in new]))[4:]
    assert told == [
        "",
        "On m: `--each 2`, torch 9, 2026-01-01, load of the machine before it 0.5.",
        "On a GPU, this is not measured yet.",
    ]
    told = list(scripts.sizing.workers([{**each, **facts, "load": 9.0} for each in new]))
    assert "before it 9, from other work: the workers had no core each" in told[5]
    _, _, _, line, *_ = scripts.sizing.workers([{**each, "engine": "local"} for each in new])
    assert line == "| m, without Ray | a, `b` | 4 | 35 | 3.50 × |"


@pytest.mark.parametrize(
    ("workers", "told", "counted"), [(2, "; 2 workers", 30), (1, "", 40)], ids=["two", "alone"]
)
def test_rates_are_counted_while_all_workers_are_busy(scripts, workers, told, counted):
    from ray_throughput import Watch

    watch = Watch(attlas.Engine("local", workers=workers), 100)
    for done in (10, 40, 50, 80, 100):
        watch(Step("explaining; 1 worker, 1 starting" if done == 40 else told, done, 100))
    assert watch.texts == counted


def test_a_rate_that_is_measured_again_takes_the_place_of_the_one_before(scripts):
    from ray_throughput import ASKED

    def asked(row):
        return [row.get(name) for name in ASKED]

    row = {"what": "workers", "machine": "m", "model": "a", "method": "b", "workers": 2, "rate": 1}
    assert asked(row) == asked({**row, "rate": 3, "load": 0.5})
    assert asked(row) != asked({**row, "workers": 4}) and asked(row) != asked({**row, "what": "x"})
