"""The command `study`."""

import json

import pytest

import attlas
from attlas.cli.study import parse_extras
from attlas.errors import UnknownNameError, UsageError
from attlas.studies import STUDIES
from attlas.studies.support.findings import Findings, untested
from attlas.studies.support.study import Study

KNOWN = {"data": "sst2", "count": None, "steps": 3, "rate": 0.5, "tasks": ("a",), "fast": False}


@pytest.mark.parametrize(
    ("words", "options"),
    [
        ([], {}),
        (["--data", "imdb", "--steps=5"], {"data": "imdb", "steps": 5}),
        (["--rate", "1", "--count", "7"], {"rate": 1.0, "count": 7}),
        (["--tasks", "rte", "--tasks", "mrpc,sst2"], {"tasks": ("rte", "mrpc", "sst2")}),
        (["--fast", "--steps", "1"], {"fast": True, "steps": 1}),
        (["--rate", "-1"], {"rate": -1.0}),
    ],
)
def test_options_of_a_study_are_those_of_its_function(words, options):
    assert parse_extras(words, KNOWN, "poster") == options


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--dta", "x"], "unknown option of poster '--dta'.*did you mean '--data'"),
        (["more"], "unknown option of poster 'more'"),
        (["--steps", "few"], "--steps takes a whole number, not 'few'"),
        (["--rate", "x"], "--rate takes a number, not 'x'"),
        (["--fast", "x"], "--fast takes true or false, not 'x'"),
        (["--data"], "--data needs a value"),
    ],
)
def test_wrong_options_are_named(words, message):
    with pytest.raises((UnknownNameError, UsageError), match=message):
        parse_extras(words, KNOWN, "poster")


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        (("attatr",), "did you mean 'attattr'"),
        (("attattr", "--models", "nowhere"), "nowhere is no folder"),
        (("attattr", "--modles", "x"), "did you mean '--models'"),
        ((), "name a study first"),
    ],
)
def test_mistakes_are_one_line(run, asked, message):
    status, out, err = run("study", *asked)
    assert (status, out) == (2, "") and message in err and err.count("\n") == 1


def test_a_study_is_run_by_its_name(run, tmp_path, monkeypatch):
    def function(run, *, steps=3, tasks=("all",)):
        claim = untested("It is so.", "a paper", "elsewhere")
        return Findings((claim,), ("all of it",), details={"steps": steps, "tasks": list(tasks)})

    stand_in = Study("attattr", function, "a", "Is it so?", "p")
    monkeypatch.setitem(STUDIES._parts, "attattr", stand_in)
    status, out, _ = run("study", "attattr", "--out", tmp_path / "found", "--quick")
    assert status == 0 and "Is it so?" in out and "quick run" in out
    assert "attattr.html" in out and (tmp_path / "found" / "attattr.html").is_file()
    status, out, _ = run("study", "attattr", "--tasks", "rte", "--steps", 7, "--json")
    assert (status, json.loads(out)["details"]) == (0, {"steps": 7, "tasks": ["rte"]})


def test_studies_are_listed_with_what_they_take(run):
    status, out, _ = run("study", "--list")
    assert status == 0 and all(name in out for name in attlas.list_studies())
    listed = json.loads(run("study", "--list", "--json")[1])
    assert {each["name"] for each in listed} == set(attlas.list_studies())
    assert all(each["paper"] and each["about"] for each in listed)


def test_help_shows_the_options_of_a_study(run):
    out = run("study", "attattr", "--help")[1]
    assert "--rank-on" in out and "default 200" in out and "--quick" in out
    out = run("study", "--help")[1]
    assert "--list" in out and all(name in out for name in attlas.list_studies())


def test_a_dry_run_tells_the_time_and_what_is_finished(run, tmp_path):
    (tmp_path / "parts").mkdir()
    (tmp_path / "parts" / "attattr-reviews-0.json").write_text("{}")
    status, out, _ = run("study", "attattr", "--quick", "--dry-run", "--out", tmp_path)
    assert status == 0 and "time " in out and "1 parts are finished" in out.replace("\n", " ")
