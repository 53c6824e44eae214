"""The command `heads`."""

import json

import pytest
from pyarrow import parquet

from attlas.results import HeadImportance, HeadRedundancy, PruneCurve

RECALL = ("heads", "--model", "recall", "--data", "recall", "--count", 6)


def test_heads_are_ranked(run, tmp_path):
    page, file = tmp_path / "heads.html", tmp_path / "heads"
    status, out, _ = run(*RECALL, "--by", "accuracy-difference", "--html", page, "--save", file)
    assert status == 0 and "heads by accuracy_difference" in out and f"wrote {page}" in out
    assert all(len(line) <= 80 for line in out.splitlines() if "wrote" not in line)
    assert HeadImportance.load(file).examples == 6
    assert "head_importance" in page.read_text("utf-8")


def test_the_scores_of_each_text_are_kept(run, tmp_path):
    out = tmp_path / "heads.parquet"
    assert run(*RECALL, "--by", "attention", "--out", out)[0] == 0
    assert parquet.read_table(out).column_names == ["text", "label", "scores"]
    assert parquet.read_metadata(out).num_rows == 6


def test_curves_are_from_texts_that_were_not_ranked_on(run):
    status, out, _ = run(*RECALL, "--prune-curve", "--by", "attention", "--by", "random", "--json")
    found = PruneCurve.from_dict(json.loads(out))
    assert status == 0 and [curve.name for curve in found.curves] == ["attention", "random"]
    assert found.notes[0] == "Ranked on 3 texts, tried on 3 others."


def test_effectiveness_and_redundancy(run, tmp_path):
    status, out, _ = run(*RECALL, "--effectiveness", "--by", "attention", "--json")
    assert status == 0 and len(json.loads(out)["curves"]) == 2
    file = tmp_path / "pairs"
    status, out, _ = run(*RECALL, "--redundancy", "--save", file)
    assert status == 0 and "bits apart" in out
    assert HeadRedundancy.load(file).distances.shape == (8, 8)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("heads", "--by", "tailor"), "did you mean 'taylor'"),
        (("heads", "--prune-curve", "--redundancy"), "one at a time"),
        (("heads", "--by", "taylor", "--by", "attattr"), "several --by need"),
        (("heads", "--redundancy", "--by", "taylor"), "it takes no --by"),
    ],
)
def test_mistakes_are_named(run, tmp_path, monkeypatch, arguments, message):
    monkeypatch.chdir(tmp_path)
    status, out, err = run(*arguments)
    assert (status, out) == (2, "") and message in err and err.count("\n") == 1


def test_data_may_be_a_file(run, tmp_path):
    path = tmp_path / "reviews.csv"
    path.write_text("sentence,label\nA great film,POSITIVE\nA dull film,NEGATIVE\n")
    status, out, err = run("heads", "--data", str(path), "--by", "attention")
    assert status == 0, err
    assert "layer 0" in out
    status, _, err = run("heads", "--data", str(tmp_path / "none.csv"), "--by", "attention")
    assert status != 0 and "none.csv" in err


def test_the_old_name_of_count_still_works(run):
    arguments = ("heads", "--model", "recall", "--data", "recall", "--by", "attention", "--json")
    assert run(*arguments, "--texts", 6) == run(*arguments, "--count", 6)
