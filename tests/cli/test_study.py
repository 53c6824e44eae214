"""The command `study`."""

import json
from dataclasses import replace

import pytest

import attlas
from attlas.studies import STUDIES


@pytest.mark.parametrize(
    ("name", "message"), [("attatr", "did you mean 'attattr'"), ("attattr", "has no folder sst2")]
)
def test_mistakes_are_one_line(run, tmp_path, monkeypatch, name, message):
    monkeypatch.chdir(tmp_path)
    status, out, err = run("study", name, "--models", ".", "--out", ".")
    assert (status, out) == (2, "") and message in err and err.count("\n") == 1


def test_a_study_is_run_by_its_name(run, tmp_path, monkeypatch):
    class Found:
        def __init__(self, **asked):
            self.asked = asked

        def markdown(self):
            return "| table |"

        def to_dict(self):
            return {name: str(value) for name, value in self.asked.items() if name != "watch"}

    def attattr(models, out, tasks=("all",), *, rank_on, count, effect_on, steps, device, watch):
        return Found(tasks=tasks, count=count, steps=steps)

    stand_in = replace(STUDIES["attattr"], function=attattr)
    monkeypatch.setitem(STUDIES._parts, "attattr", stand_in)
    called = ("study", "attattr", "--models", tmp_path, "--out", tmp_path)
    assert run(*called)[:2] == (0, "| table |\n")
    status, out, _ = run(*called, "--task", "rte", "--count", 7, "--json")
    assert (status, json.loads(out)) == (0, {"tasks": "['rte']", "count": "7", "steps": "20"})
    assert json.loads(run(*called, "--json")[1])["tasks"] == "('all',)"


def test_help_lists_the_studies(run):
    out = run("study", "--help")[1]
    assert all(name in out for name in attlas.list_studies())
