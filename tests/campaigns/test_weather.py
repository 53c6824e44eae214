"""A changed clock, damaged checkpoints, two runs into one folder: the same result, or one line."""

import os
import shutil
import subprocess
import sys
import time
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pytest
from audits import without_times
from pyarrow import parquet

import attlas
from attlas.auditing import folder as audit_folder
from attlas.errors import AttlasError, UsageError

TEXTS = [f"a film number {number} that is {word}" for number in range(40) for word in ("bad", "ok")]
LABELLED = [
    (f"{word} film {number}", label)
    for number in range(8)
    for word, label in (("good", "POSITIVE"), ("bad", "NEGATIVE"))
]
YEARS = [-20 * 365 * 86_400, 20 * 365 * 86_400]


class Stop(BaseException):
    """Ends work from within, as a kill does."""


def stop_after(count):
    """A watch that ends the work when it was told so often."""
    told = []

    def watch(step):
        told.append(step)
        if len(told) > count:
            raise Stop

    return watch


def shift_clock(monkeypatch, folder, seconds):
    """Set the clock, and the times of all files in a folder, far back or ahead."""
    real, then = time.time, time.time() + seconds
    monkeypatch.setattr(time, "time", lambda: real() + seconds)

    class Shifted(datetime):
        @classmethod
        def now(cls, tz=None):
            return datetime.fromtimestamp(then, tz)

    monkeypatch.setattr(audit_folder, "datetime", Shifted)
    for path in folder.rglob("*"):
        os.utime(path, (then, then))


@pytest.mark.parametrize("seconds", YEARS)
def test_scores_go_on_under_another_clock(tmp_path, monkeypatch, seconds):
    monkeypatch.setattr("attlas.explaining.writing_scores.CHUNK", 16)
    subject = attlas.load("shortcut_token")
    attlas.explain_to(subject, TEXTS, tmp_path / "whole.parquet", "raw_attention")
    cut = tmp_path / "cut.parquet"
    with pytest.raises(Stop):
        attlas.explain_to(subject, TEXTS, cut, "raw_attention", watch=stop_after(3))
    shift_clock(monkeypatch, tmp_path, seconds)
    again = attlas.explain_to(subject, TEXTS, cut, "raw_attention")
    assert 0 < again.earlier < len(TEXTS)
    assert parquet.read_table(cut).equals(parquet.read_table(tmp_path / "whole.parquet"))


@pytest.mark.parametrize("seconds", YEARS)
def test_an_audit_goes_on_under_another_clock(tmp_path, monkeypatch, seconds):
    subject = attlas.load("shortcut_token")
    asked = {"quick": True, "methods": ["raw_attention", "gradient"], "trials": []}
    whole = attlas.audit(subject, LABELLED, out=tmp_path / "whole", **asked)
    with pytest.raises(Stop):
        attlas.audit(subject, LABELLED, out=tmp_path / "cut", watch=stop_after(4), **asked)
    shift_clock(monkeypatch, tmp_path / "cut", seconds)
    again = attlas.audit(subject, LABELLED, out=tmp_path / "cut", **asked)
    assert without_times(again) == without_times(whole)


RUN = """
import sys, attlas
subject = attlas.load("shortcut_token")
def wait(step):
    print("working", flush=True)
    sys.stdin.readline()
attlas.explain_to(subject, ["a good film", "a bad one"], sys.argv[1], "raw_attention", watch=wait)
"""


def test_two_runs_into_one_file(tmp_path):
    out, texts = tmp_path / "scores.parquet", ["a good film", "a bad one"]
    first = subprocess.Popen(
        [sys.executable, "-c", RUN, str(out)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        for _ in range(2):  # while it reads the data, and when its first part is done
            assert first.stdout.readline() == "working\n"
            first.stdin.write("\n")
            first.stdin.flush()
        assert first.stdout.readline() == "working\n"
        with pytest.raises(UsageError, match="in use"):
            attlas.explain_to(attlas.load("shortcut_token"), texts, out, "raw_attention")
        first.communicate("\n" * 9, timeout=120)
        assert first.returncode == 0 and parquet.read_table(out).num_rows == 2
    finally:
        first.kill()
        first.wait()


TRAINING = {"epochs": 3, "seed": 0, "device": "cpu"}


def flipped(path, random):
    content = bytearray(path.read_bytes())
    content[int(random.integers(len(content)))] ^= 1 << int(random.integers(8))
    path.write_bytes(bytes(content))


def weights(folder):
    return (folder / "model.safetensors").read_bytes()


def stop_in_the_third(step):
    """Ends a training after its second epoch."""
    if step.done >= step.total * 2 / 3:
        raise Stop


def test_a_damaged_checkpoint_of_a_recurrent_model_is_not_read(tmp_path):
    asked = {"model": "bilstm", "data": LABELLED * 4, **TRAINING}
    attlas.train(out=tmp_path / "whole", **asked)
    with pytest.raises(Stop):
        attlas.train(out=tmp_path / "cut", watch=stop_in_the_third, **asked)
    random = np.random.default_rng(0)
    for number in range(6):
        place = tmp_path / f"damaged{number}"
        shutil.copytree(tmp_path / "cut", place)
        (checkpoint,) = place.rglob("training.safetensors")
        if number == 0:
            checkpoint.write_bytes(checkpoint.read_bytes()[:-100])
        elif number == 1:
            checkpoint.write_bytes(b"")
        else:
            flipped(checkpoint, random)
        attlas.train(out=place, **asked)
        one, other = (
            (tmp_path / name / "model.safetensors").read_bytes() for name in ("whole", place.name)
        )
        assert one == other


def test_a_damaged_checkpoint_of_a_transformer_is_not_read(tmp_path):
    pytest.importorskip("accelerate")
    asked = {"base": "shortcut_token", "data": LABELLED * 2, **TRAINING}
    attlas.train(out=tmp_path / "whole", **asked)
    with pytest.raises(Stop):
        attlas.train(out=tmp_path / "cut", watch=stop_in_the_third, **asked)
    names = {path.name for path in (tmp_path / "cut").glob("checkpoints/checkpoint-*/*")}
    assert {"model.safetensors", "optimizer.pt", "digests.json"} <= names
    random = np.random.default_rng(0)
    for name in ("model.safetensors", "optimizer.pt", "digests.json"):
        place = tmp_path / f"damaged {name}"
        shutil.copytree(tmp_path / "cut", place)
        for path in place.glob(f"checkpoints/checkpoint-*/{name}"):
            flipped(path, random)
        attlas.train(out=place, **asked)
        one, other = (
            (tmp_path / each / "model.safetensors").read_bytes() for each in ("whole", place.name)
        )
        assert one == other, name


def test_two_trainings_into_one_folder(tmp_path):
    asked = {"base": "shortcut_token", "data": LABELLED, **TRAINING}
    told = []

    def meanwhile(step):
        if not told:
            told.append(step)
            with pytest.raises(AttlasError, match="in use"):
                attlas.train(out=tmp_path / "one", **asked)

    attlas.train(out=tmp_path / "one", watch=meanwhile, **asked)
    assert told and (tmp_path / "one" / "model.safetensors").exists()


def test_the_clock_was_really_changed(tmp_path, monkeypatch):
    Path(tmp_path, "file").write_text("")
    shift_clock(monkeypatch, tmp_path, YEARS[1])
    year = datetime.fromtimestamp(Path(tmp_path, "file").stat().st_mtime, UTC).year
    assert year > 2040 < audit_folder.datetime.now(UTC).year
