"""explain_to: a row for each text, done once, whatever happens on the way."""

import errno
import json
import os
import re
from copy import deepcopy
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import torch
from pyarrow import parquet
from subjects import LONG, OTHER, SHORT, subject

import attlas
from attlas.errors import AttlasError, ResultFileError, UnknownNameError, UsageError
from attlas.explaining import score_parts, writing_scores
from attlas.results.support.lock import locked

TEXTS = [LONG, SHORT, OTHER, SHORT, LONG, OTHER, SHORT]
TOO_LONG = " ".join(["film"] * 5000)
METHOD = "raw_attention"
ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def classifier():
    return subject("sequence classification")


@pytest.fixture(autouse=True)
def small_parts(monkeypatch):
    monkeypatch.setattr(writing_scores, "CHUNK", 3)


@pytest.fixture
def out(tmp_path):
    return tmp_path / "scores.parquet"


@pytest.fixture
def stopped(classifier, out, monkeypatch):
    """Two parts of three are done: the work stopped when the third was to be written."""
    write = score_parts.ScoreParts.write

    def stop(parts, number, *others):
        if number == 2:
            raise KeyboardInterrupt
        write(parts, number, *others)

    with monkeypatch.context() as patch:
        patch.setattr(score_parts.ScoreParts, "write", stop)
        with pytest.raises(KeyboardInterrupt) as interrupt:
            attlas.explain_to(classifier, TEXTS, out, METHOD)
    assert interrupt.value.__notes__ == [score_parts.stopped_note(out)]
    return parts_of(out)


def parts_of(out):
    return out.with_name("scores.parquet.parts")


def names_in(folder):
    return sorted(path.name for path in folder.iterdir())


def test_the_file_has_what_explain_gives(classifier, out):
    examples = [attlas.Example(text, "good") for text in TEXTS]
    written = attlas.explain_to(classifier, examples, out, "gradient_attention", target=1)
    assert (written.path, written.rows, written.problems, written.earlier) == (str(out), 7, 0, 0)
    table = pd.read_parquet(out)
    assert [*table.columns] == writing_scores.SCHEMA.names
    assert [*table.row] == [*range(7)] and [*table.text] == TEXTS
    wanted = attlas.explain(classifier, examples, "gradient_attention", target=1, maps=False)
    for row, known in zip(table.itertuples(), wanted, strict=True):
        assert (*row.tokens,) == known.tokens.texts
        assert (*row.special,) == known.tokens.special
        assert (*row.segments,) == known.tokens.segments
        np.testing.assert_allclose(row.scores, known.scores, atol=1e-6)
        assert (row.target, row.quantity) == (known.target.name, known.target.quantity)
        assert row.value == pytest.approx(known.target.value, abs=1e-6)
        assert row.predicted == known.prediction[0]["label"]
        assert row.probability == pytest.approx(known.prediction[0]["probability"], abs=1e-6)
        assert (row.true_label, (*row.notes,)) == ("good", known.notes)
        spans = [span or (None, None) for span in known.tokens.offsets]
        places = zip(row.starts.tolist(), row.ends.tolist(), strict=True)
        assert [tuple(None if pd.isna(x) else int(x) for x in each) for each in places] == spans
    assert table.problem.isna().all() and table.licence.isna().all()
    assert names_in(out.parent) == ["scores.parquet"]


def test_the_file_says_how_it_was_made(classifier, out):
    attlas.explain_to(classifier, TEXTS, out, "attention_rollout", residual=0.25)
    details = json.loads(parquet.read_schema(out).metadata[b"attlas"])
    settings = details["settings"]
    assert settings["method"] == "attention_rollout" and settings["options"]["residual"] == 0.25
    assert settings["model"] == classifier.name and len(settings["weights"]) == 64
    assert settings["attlas"] == attlas.__version__
    assert (details["rows"], details["problems"], details["source"]) == (7, 0, "a list")


def test_without_a_name_the_best_method_that_runs_is_taken(classifier, out):
    attlas.explain_to(classifier, TEXTS, out)
    details = json.loads(parquet.read_schema(out).metadata[b"attlas"])
    assert details["settings"]["method"] == attlas.explain(classifier, LONG).method


def test_pairs_words_and_licences_have_their_columns(out):
    pairs = [((LONG, SHORT), "x"), ((OTHER, SHORT), "y")]
    attlas.explain_to(subject("sequence classification"), pairs, out, METHOD, licence=True)
    table = pd.read_parquet(out)
    assert [*table.text] == [LONG, OTHER] and [*table.pair] == [SHORT, SHORT]
    assert {"text_a", "text_b"} <= {*table.segments[0]}
    assert table.licence.notna().all()


def test_rows_that_cannot_be_explained_have_the_reason_and_the_others_their_scores(classifier, out):
    texts = [LONG, "", TOO_LONG, SHORT, None, OTHER]
    written = attlas.explain_to(classifier, texts, out, METHOD)
    assert (written.rows, written.problems) == (6, 3)
    table = pd.read_parquet(out)
    assert [*table.problem.isna()] == [*table.scores.notna()]
    assert [*table.row[table.problem.notna()]] == [1, 2, 4]
    assert table.problem[1] == table.problem[4] == "no text"
    assert "tokens" in table.problem[2] and table.text[2] == TOO_LONG
    attlas.explain_to(classifier, texts, out.with_name("cut.parquet"), METHOD, truncate=True)
    assert pd.read_parquet(out.with_name("cut.parquet")).problem.notna().sum() == 2


def test_a_text_that_only_the_method_refuses_is_found_among_many(out):
    filler = subject("token classification")
    texts = ["the cat sat", "a dog was kind", "my cat", "the film was good", "a cat", "a film"]
    written = attlas.explain_to(filler, texts, out, "gradient", position="cat")
    table = pd.read_parquet(out)
    assert written.problems == 3
    assert [*table.row[table.problem.isna()]] == [0, 2, 4]
    assert [*table.position.dropna()] == [2, 3, 2]


def test_what_no_text_can_be_asked_is_an_error_and_leaves_nothing(classifier, out):
    with pytest.raises(UnknownNameError, match="unknown label 'wrong'"):
        attlas.explain_to(classifier, TEXTS, out, METHOD, target="wrong")
    assert names_in(out.parent) == []


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ({"out": "scores.csv"}, r"ends in \.parquet"),
        ({"out": "nowhere/scores.parquet"}, "the folder .*nowhere is not there"),
        ({"out": "x" * 300 + ".parquet"}, "cannot make the folder .*name too long"),
        ({"method": "raw_atention"}, "unknown method"),
        ({"layers": 1}, "did you mean 'layer'"),
        ({"target": [0, 1]}, "one target for all"),
        ({"data": iter(TEXTS)}, "an iterator can be read only once"),
        ({"data": "missing.csv"}, r"missing\.csv cannot be read"),
    ],
)
def test_mistakes_are_told_before_anything_is_written(classifier, tmp_path, given, problem):
    asked = {"data": TEXTS, "out": "scores.parquet", "method": METHOD, **given}
    with pytest.raises(AttlasError, match=problem):
        attlas.explain_to(classifier, asked.pop("data"), tmp_path / asked.pop("out"), **asked)
    assert names_in(tmp_path) == []


def test_what_is_done_is_not_done_again(classifier, out, stopped, monkeypatch):
    asked = []
    explain = writing_scores.explain

    def counted(subject, texts, *others, **named):
        asked.extend(texts)
        return explain(subject, texts, *others, **named)

    monkeypatch.setattr(writing_scores, "explain", counted)
    assert names_in(stopped) == ["00000000.parquet", "00000001.parquet", "lock", "manifest.json"]
    written = attlas.explain_to(classifier, TEXTS, out, METHOD)
    assert (written.rows, written.earlier, len(asked)) == (7, 6, 1)
    assert names_in(out.parent) == ["scores.parquet"]
    whole = out.with_name("whole.parquet")
    attlas.explain_to(classifier, TEXTS, whole, METHOD)
    pd.testing.assert_frame_equal(pd.read_parquet(out), pd.read_parquet(whole), check_exact=True)
    asked.clear()
    assert attlas.explain_to(classifier, TEXTS, out, METHOD).earlier == 7
    assert asked == []


@pytest.mark.parametrize("damage", [b"", b"PAR1 and more", None])
def test_a_damaged_part_is_done_again(classifier, out, stopped, damage):
    part = stopped / "00000000.parquet"
    content = part.read_bytes()
    flipped = content[:200] + bytes([content[200] ^ 255]) + content[201:]
    part.write_bytes(flipped if damage is None else damage)
    written = attlas.explain_to(classifier, TEXTS, out, METHOD)
    assert (written.rows, written.earlier) == (7, 3)
    assert [*pd.read_parquet(out).text] == TEXTS


@pytest.mark.parametrize(
    ("change", "differs"),
    [
        ({"method": "attention_rollout"}, 'method is "raw_attention" there'),
        ({"layer": 0}, "options.layer is -1 there and 0 here"),
        ({"target": 1}, "asked.target is not given there and 1 here"),
        ({"data": TEXTS[:-1]}, "data.rows is 7 there and 6 here"),
        ({"data": [*TEXTS[:-1], "a good cat"]}, "data.digest"),
    ],
)
def test_other_settings_are_refused_and_what_is_done_stays(
    classifier, out, stopped, change, differs
):
    before = names_in(stopped)
    asked = {"data": TEXTS, "method": METHOD, **change}
    with pytest.raises(UsageError, match=differs) as problem:
        attlas.explain_to(classifier, asked.pop("data"), out, **asked)
    assert f"delete {stopped} to begin anew" in str(problem.value)
    assert names_in(stopped) == before
    attlas.explain_to(classifier, TEXTS, out, METHOD)
    with pytest.raises(UsageError, match="was begun with other settings"):
        attlas.explain_to(classifier, TEXTS[1:], out, METHOD)


def test_other_weights_are_refused(out, stopped):
    known = subject("sequence classification")
    changed = attlas.Subject(deepcopy(known.model), known.tokenizer)
    with torch.no_grad():
        next(changed.model.parameters()).add_(1)
    with pytest.raises(UsageError, match="weights is"):
        attlas.explain_to(changed, TEXTS, out, METHOD)


def test_a_file_of_others_is_never_replaced(classifier, out):
    pd.DataFrame({"a": [1]}).to_parquet(out)
    with pytest.raises(UsageError, match="holds no scores of Attlas"):
        attlas.explain_to(classifier, TEXTS, out, METHOD)
    assert pd.read_parquet(out).a[0] == 1 and names_in(out.parent) == ["scores.parquet"]


def test_a_run_that_ended_before_the_parts_were_deleted_is_done(classifier, out, stopped):
    attlas.explain_to(classifier, TEXTS, out.with_name("other.parquet"), METHOD)
    os.replace(out.with_name("other.parquet"), out)
    assert attlas.explain_to(classifier, TEXTS, out, METHOD).earlier == 7
    assert not stopped.exists()


def test_only_own_drafts_are_deleted(classifier, out, stopped):
    own, folder = stopped / ".attlas-0123456789abcdef", stopped / ".attlas-folder"
    mine = stopped / ".attlas-mine"
    own.write_text("half of")
    mine.write_text("mine")
    folder.mkdir()
    assert attlas.explain_to(classifier, TEXTS, out, METHOD).rows == 7
    assert mine.read_text() == "mine" and folder.is_dir() and not own.exists()


def test_a_pipe_is_no_file_of_scores(classifier, out):
    os.mkfifo(out)
    with pytest.raises(UsageError, match="is no plain file"):
        attlas.explain_to(classifier, TEXTS, out, METHOD)


def test_two_runs_into_one_file_are_refused(classifier, out, stopped):
    with locked(stopped / "lock"), pytest.raises(UsageError, match=r"in use .* another file"):
        attlas.explain_to(classifier, TEXTS, out, METHOD)
    assert attlas.explain_to(classifier, TEXTS, out, METHOD).rows == 7


def test_a_full_disk_is_one_clear_line_and_work_can_go_on(classifier, out, stopped, monkeypatch):
    def full(*others, **named):
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr("attlas.views.files.os.replace", full)
        with pytest.raises(ResultFileError, match=r"cannot write .*No space left on device"):
            attlas.explain_to(classifier, TEXTS, out, METHOD)
    with monkeypatch.context() as patch:
        patch.setattr(score_parts.parquet, "ParquetWriter", full)
        with pytest.raises(ResultFileError, match=r"No space left .* goes on from there"):
            attlas.explain_to(classifier, TEXTS, out, METHOD)
    written = attlas.explain_to(classifier, TEXTS, out, METHOD)
    assert (written.rows, written.earlier) == (7, 7)


def test_parts_become_groups_of_rows(classifier, out, monkeypatch):
    monkeypatch.setattr(score_parts, "ROW_GROUP", 1)
    attlas.explain_to(classifier, TEXTS, out, METHOD)
    assert parquet.ParquetFile(out).num_row_groups == 3
    assert pa.concat_tables([parquet.read_table(out)]).num_rows == 7


def test_the_page_on_many_texts_is_true(tmp_path, monkeypatch):
    """Its Python runs as it stands, one block after the other."""
    monkeypatch.chdir(tmp_path)
    pd.DataFrame({"review": ["a warm film", "", "dull"]}).to_csv("reviews.csv", index=False)
    page = (ROOT / "docs" / "guides" / "many_texts.md").read_text(encoding="utf-8")
    known = {}
    for block in re.findall(r"^```python\n(.*?)^```", page, flags=re.DOTALL | re.MULTILINE):
        exec(block, known)
    assert (len(known["table"]), len(known["problems"]), known["written"].rows) == (3, 1, 3)
    assert {"token", "score"} <= {*known["tokens"].columns}
    assert known["settings"]["method"] == "attention_rollout"


def test_the_page_on_many_texts_describes_every_column():
    page = (ROOT / "docs" / "guides" / "many_texts.md").read_text(encoding="utf-8")
    first_cells = re.findall(r"^\| (`[^|]*) \|", page, flags=re.MULTILINE)
    assert re.findall(r"`(\w+)`", " ".join(first_cells)) == writing_scores.SCHEMA.names


def test_how_far_it_is_is_told(classifier, out):
    steps = []
    attlas.explain_to(classifier, TEXTS, out, METHOD, watch=steps.append)
    told = [step for step in steps if step.what.startswith(("3", "6", "7"))]
    assert [(step.done, step.total) for step in told] == [(3, 7), (6, 7), (7, 7)]
    assert told[0].what.startswith("3 of 7 texts, ") and told[0].left > 0


def test_a_folder_of_others_beside_the_file_is_left_alone(classifier, out):
    parts = parts_of(out)
    parts.mkdir()
    for name in ("manifest.json", "00000000.parquet", ".attlas-mine"):
        (parts / name).write_text("mine")
    with pytest.raises(UsageError, match="Attlas did not write it"):
        attlas.explain_to(classifier, TEXTS, out, METHOD)
    assert {path.read_text() for path in parts.iterdir()} == {"mine"}


def test_a_file_whose_details_are_brackets_without_end_is_refused(classifier, out):
    table = pa.table({"a": [1]}).replace_schema_metadata({b"attlas": b"[" * 100_000})
    parquet.write_table(table, out)
    with pytest.raises(UsageError, match="holds no scores of Attlas"):
        attlas.explain_to(classifier, TEXTS, out, METHOD)


def test_a_finished_file_that_was_changed_is_refused(classifier, out):
    attlas.explain_to(classifier, TEXTS, out, METHOD)
    data = bytearray(out.read_bytes())
    data[len(data) // 3] ^= 4
    out.write_bytes(data)
    with pytest.raises(ResultFileError, match="damaged"):
        attlas.explain_to(classifier, TEXTS, out, METHOD)


def test_parts_that_changed_places_are_done_again(classifier, out, stopped):
    first, second = (stopped / f"{number:08d}.parquet" for number in (0, 1))
    aside = first.read_bytes()
    first.write_bytes(second.read_bytes())
    second.write_bytes(aside)
    assert attlas.explain_to(classifier, TEXTS, out, METHOD).earlier == 0
    assert pd.read_parquet(out)["row"].tolist() == [*range(len(TEXTS))]
