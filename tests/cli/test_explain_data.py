"""`attlas explain --data`: many texts on the command line, and the usual mistakes."""

import json

import pandas as pd
import pytest

from attlas.explaining import writing_scores

TEXTS = ["a warm and funny film", "dull", "", "not a great film"]
ASKED = ("explain", "--method", "raw_attention")


@pytest.fixture
def data(tmp_path):
    path = tmp_path / "texts.csv"
    pd.DataFrame({"review": TEXTS, "stars": [5, 1, 2, 1]}).to_csv(path, index=False)
    return path


@pytest.fixture
def out(tmp_path):
    return tmp_path / "scores.parquet"


def test_the_scores_of_a_file_are_written(run, data, out):
    columns = ("--text", "review", "--label", "stars")
    status, told, err = run(*ASKED, "--data", data, *columns, "--out", out)
    assert (status, err) == (0, "")
    assert told.startswith(f"wrote {out}: 4 rows, 1 of them with a problem; ")
    table = pd.read_parquet(out)
    assert [*table.true_label.dropna()] == ["5", "1", "1"]
    assert [*table.problem.dropna()] == ["no text"]
    status, told, _ = run(*ASKED, "--data", data, *columns, "--out", out)
    assert (status, told) == (
        0,
        f"wrote {out}: 4 rows, 1 of them with a problem; all were there already\n",
    )


def test_the_summary_may_be_json(run, out):
    asked = ("--data", "reviews", "--count", 5, "--seed", 3, "--target", "NEGATIVE")
    status, told, _ = run(*ASKED, *asked, "--out", out, "--json")
    record = json.loads(told)
    assert status == 0 and record.pop("seconds") > 0
    assert record == {"path": str(out), "rows": 5, "problems": 0, "earlier": 0}
    assert {*pd.read_parquet(out).target} == {"NEGATIVE"}


@pytest.mark.parametrize(
    ("asked", "problem"),
    [
        (("--data", "DATA"), "--data needs --out"),
        (("--out", "OUT", "a text"), "--out needs --data"),
        (("--count", "3", "a text"), "--count needs --data"),
        (("--text", "review", "a text"), "--text needs --data"),
        (("--data", "DATA", "--out", "OUT", "a text"), "does not go with a text"),
        (("--data", "DATA", "--out", "OUT", "--html", "page.html"), "does not go with --html"),
        (("--data", "DATA", "--out", "OUT", "--save", "x"), "does not go with --save"),
        (("--data", "DATA", "--out", "OUT", "--maps"), "does not go with --maps"),
        (("--data", "DATA", "--out", "OUT", "--generate", "3"), "does not go with --generate"),
        (("--data", "DATA", "--out", "OUT", "--messages", "x"), "does not go with --messages"),
        (("--data", "DATA", "--out", "OUT", "--text", "rewiew"), "did you mean 'review'"),
        (("--data", "DATA", "--out", "OUT", "--pair", "stars"), "name the first too"),
        (("--data", "DATA", "--out", "scores.csv"), "ends in .parquet"),
        (("--data", "DATA", "--out", "none/s.parquet"), "the folder none is not there"),
        (("--data", "missing.csv", "--out", "OUT"), "missing.csv"),
        (("--data", "reviews", "--out", "OUT", "--split", "train"), "has no split 'train'"),
        (("--data", "reviews", "--out", "OUT", "--target", "GOOD"), "unknown label 'GOOD'"),
        (("--data", "reviews", "--out", "OUT", "--option", "layers=1"), "did you mean 'layer'"),
    ],
)
def test_a_mistake_is_one_line(run, data, out, asked, problem):
    given = [{"DATA": data, "OUT": out}.get(word, word) for word in asked]
    status, told, err = run(*ASKED, *given)
    assert (status, told) == (2, "")
    assert err.startswith("attlas: ") and err.count("\n") == 1 and problem in err
    assert not out.exists() and not out.with_name("scores.parquet.parts").exists()


def test_a_stop_says_how_to_go_on(run, out, monkeypatch):
    monkeypatch.setattr(writing_scores, "CHUNK", 4)
    row = writing_scores.score_row

    def stop(given, outcome):
        if given.number == 6:
            raise KeyboardInterrupt
        return row(given, outcome)

    asked = (*ASKED, "--data", "reviews", "--count", "10", "--out", str(out))
    with monkeypatch.context() as patch:
        patch.setattr(writing_scores, "score_row", stop)
        status, _, err = run(*asked)
    first, again = err.splitlines()
    assert status == 130
    assert first.startswith("attlas: stopped after 4 of 10 texts, ")
    assert first.endswith(f"kept in {out}.parts; asked again, it goes on from there")
    assert again == " ".join(["attlas", *asked])
    status, told, _ = run(*asked, "--json")
    assert (status, json.loads(told)["earlier"]) == (0, 4)


def test_a_stop_before_anything_is_done_promises_nothing(run, out, monkeypatch):
    def stop(given, outcome):
        raise KeyboardInterrupt

    monkeypatch.setattr(writing_scores, "score_row", stop)
    status, _, err = run(*ASKED, "--data", "reviews", "--count", "4", "--out", str(out))
    assert status == 130 and list(out.parent.glob("scores*")) == []
    assert "; nothing is kept, as no part" in err and "kept in" not in err


def test_a_folder_that_cannot_be_written_is_one_line(run, out):
    out.with_name("scores.parquet.parts").write_text("a file")
    status, _, err = run(*ASKED, "--data", "reviews", "--out", out)
    assert status == 2
    said = "exists, but Attlas did not write it: write to another file"
    assert err == f"attlas: {out}.parts {said}\n"


def test_the_scores_of_a_file_at_an_address_go_to_another(run, data, tmp_path):
    out = f"memory://{tmp_path}/scores.parquet"
    columns = ("--text", "review", "--label", "stars")
    status, told, err = run(*ASKED, "--data", f"file://{data}", *columns, "--out", out)
    assert (status, err) == (0, "")
    assert told.startswith(f"wrote {out}: 4 rows, 1 of them with a problem; ")
    assert [*pd.read_parquet(out).problem.dropna()] == ["no text"]
    status, _, err = run(*ASKED, "--data", data, "--out", "s4://bucket/scores.parquet")
    assert status == 2 and "s4://bucket/scores.parquet cannot be opened" in err
