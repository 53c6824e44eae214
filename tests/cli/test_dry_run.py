"""`--dry-run`: every command that does work says what it would take, and does none of it."""

import json

import pytest

from attlas.heads import rankings
from attlas.methods.support.method import Method

LONG, WIDE = 12, 80
COMMANDS = {
    "explain": ("explain", "a warm and funny film"),
    "a method": ("explain", "a warm and funny film", "--method", "attattr", "--licence"),
    "generation": ("explain", "--model", "dates", "March 3rd, 1987", "--generate", 4),
    "scores": ("explain", "--data", "reviews", "--out", "scores.parquet", "--count", 6),
    "heads": ("heads", "--count", 6),
    "curve": ("heads", "--count", 6, "--prune-curve"),
    "effectiveness": ("heads", "--count", 6, "--effectiveness"),
    "redundancy": ("heads", "--count", 6, "--redundancy"),
    "triggers": ("triggers", "--count", 6, "--candidates", 2),
    "tree": ("tree", "a warm and funny film"),
    "trial": ("trial", "permutation", "--count", 4),
    "score": ("methods", "--score", "--model", "recall", "--method", "attattr", "--count", 4),
}


@pytest.fixture
def idle(monkeypatch, tmp_path):
    """No method and no ranking may run."""
    asked = []
    monkeypatch.setattr(Method, "score", lambda method, *_: asked.append(method.name))
    monkeypatch.setattr(rankings, "attribute_sites", lambda *_: asked.append("attribute_sites"))
    monkeypatch.chdir(tmp_path)
    return asked


@pytest.mark.parametrize("arguments", COMMANDS.values(), ids=COMMANDS)
def test_a_dry_run_explains_nothing_and_prints_a_few_lines(run, idle, tmp_path, arguments):
    status, out, err = run(*arguments, "--dry-run")
    lines = out.splitlines()
    assert (status, err, idle) == (0, "", [])
    assert len(lines) <= LONG and max(map(len, lines)) <= WIDE
    assert any(line.startswith("time ") and " to " in line for line in lines)
    assert any(line.startswith("memory ") and "beside the weights" in line for line in lines)
    assert list(tmp_path.iterdir()) == []


def test_a_dry_run_as_json_has_all_of_the_plan(run, idle):
    status, out, _ = run(*COMMANDS["a method"], "--dry-run", "--json")
    found = json.loads(out)
    low, high = found["between"]
    assert status == 0 and low < found["seconds"] < high
    assert set(found["seconds_by_work"]) == {"attattr", "licences"} and found["texts"] == 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("explain", "a film", "--method", "atattr"), "attattr"),
        (("explain", "a film", "--target", "GREAT"), "GREAT"),
        (("explain", "a film", "--method", "attattr", "--option", "steps=few"), "steps"),
        (("heads", "--by", "tailor", "--count", 4), "tailor"),
        (("tree", "a film", "--variant", "new"), "new"),
        (("trial", "permutations", "--count", 4), "permutation"),
        (("methods", "--dry-run"), "--score"),
        (("study", "attattr", "--models", "nowhere", "--out", "out"), "nowhere"),
    ],
)
def test_wrong_arguments_are_told_all_the_same(run, idle, arguments, message):
    status, out, err = run(*arguments, *(() if "--dry-run" in arguments else ("--dry-run",)))
    assert status in (1, 2) and out == "" and message in err
    assert len(err.splitlines()) == 1
