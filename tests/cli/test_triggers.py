"""The command `triggers`."""

import json

import pytest

from attlas.results import Triggers


@pytest.mark.parametrize(
    ("arguments", "message", "status"),
    [
        (["-m", "recall", "--data", "recall"], "one of several labels", 1),
        (["--data", "nothing"], "unknown set of texts", 2),
        (["--texts", 8, "--count", 2, "--candidates", 1], "give one of them", 2),
    ],
)
def test_a_mistake_is_one_line(run, arguments, message, status):
    actual, out, err = run("triggers", *arguments)
    assert (actual, out) == (status, "")
    assert message in err and err.count("\n") == 1


def test_triggers_of_the_shortcut_model_name_the_planted_word(run, tmp_path):
    status, out, err = run(
        "triggers", "-m", "shortcut_token", "--data", "shortcuts", "--count", 16,
        "--candidates", 2, "--draws", 2, "--save", tmp_path / "found",
        "--html", tmp_path / "page.html",
    )  # fmt: skip
    assert (status, err) == (0, "")
    assert "amber" in out or "cobalt" in out
    assert Triggers.load(tmp_path / "found")[0].text.split()[0] in out
    assert (tmp_path / "page.html").exists()
    assert all(len(line) <= 80 for line in out.splitlines() if not line.startswith("wrote"))


def test_triggers_in_json_is_one_document(run):
    status, out, _ = run(
        "triggers", "-m", "shortcut_token", "--data", "shortcuts", "--count", 8,
        "--candidates", 1, "--draws", 1, "--json",
    )  # fmt: skip
    assert status == 0
    assert len(json.loads(out)["triggers"]) == 1


def test_the_old_meaning_of_count_works_with_a_warning(run):
    status, out, err = run(
        "triggers", "-m", "shortcut_token", "--data", "shortcuts", "--texts", 8,
        "--count", 1, "--draws", 1, "--json",
    )  # fmt: skip
    assert status == 0
    assert "--count without --candidates is still the number of triggers" in err
    assert len(json.loads(out)["triggers"]) == 1
