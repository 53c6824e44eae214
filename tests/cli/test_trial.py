"""The command `trial`."""

import json

import pytest
import tiny

from attlas.results import TrialResult


def test_a_trial_of_the_embedded_model(run, tmp_path):
    status, out, err = run(
        "trial", "permutation", "--count", 8, "--option", "repeats=3", "--scope", "all",
        "--html", tmp_path / "page.html", "--save", tmp_path / "found",
    )  # fmt: skip
    assert (status, err) == (0, "")
    assert "permutation · sentiment on reviews" in out and "difference: 0." in out
    assert (tmp_path / "page.html").exists()
    found = TrialResult.load(tmp_path / "found")
    assert found.settings == {"repeats": 3, "seed": 0} and found.scope.startswith("all layers")
    assert all(len(line) <= 80 for line in out.splitlines() if not line.startswith("wrote"))


def test_a_trial_in_json_is_one_document(run):
    status, out, _ = run("trial", "uniform", "--count", 6, "--layer", 0, "--json")
    record = json.loads(out)
    assert status == 0
    assert record["section"]["scope"].startswith("layer 0")


def test_a_trial_that_trains_takes_its_texts_from_a_file(run, tmp_path):
    model, tokenizer = tiny.subject_parts("sequence classification")
    model.save_pretrained(tmp_path)
    tokenizer.save_pretrained(tmp_path)
    rows = ["a great film,POSITIVE", "a poor film,NEGATIVE", "it is fine,NEUTRAL"]
    table = tmp_path / "texts.csv"
    table.write_text("\n".join(["text,label", *rows]), encoding="utf-8")
    asked = ("trial", "remove_and_retrain", "--model", tmp_path, "--data", table)
    short = ("epochs=1", 'methods=["raw_attention"]', "shares=[0.5]", "forms=plain")
    options = [word for each in short for word in ("--option", each)]
    status, out, _ = run(*asked, "--train", table, *options, "--json")
    assert status == 0
    assert TrialResult.from_dict(json.loads(out)).settings["training"] == str(table)
    status, out, err = run(*asked, *options)
    assert (status, out) == (2, "") and "needs texts to train on" in err


@pytest.mark.parametrize(
    ("arguments", "message", "status"),
    [
        (["permutations"], "unknown trial 'permutations'", 2),
        (["uniform", "--option", "repeats=3"], "unknown option of uniform 'repeats'", 2),
        (["uniform", "--scope", "top"], "unknown scope 'top'", 2),
        (["uniform", "--data", "nothing"], "unknown set of texts", 2),
    ],
)
def test_a_mistake_is_one_line(run, arguments, message, status):
    actual, out, err = run("trial", *arguments)
    assert (actual, out) == (status, "")
    assert message in err and err.count("\n") == 1
