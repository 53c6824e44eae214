"""Flipped bits in all that an audit leaves on disk: never another report, never a traceback."""

import shutil

import numpy as np
import pandas as pd
import pytest
from audits import SMALLEST, small_audit, without_times
from campaigning import times

from attlas.auditing.folder import Folder
from attlas.errors import AttlasError, ResultFileError

FLIPS = times(100_000)
AUDITS = times(200, 10)  # each with the whole audit behind it
NAMES = ("values 00000", "draft 00000 scores", "trial permutation last")


def tables():
    """Tables as different work writes them: numbers, texts, lists."""
    random = np.random.default_rng(0)
    yield pd.DataFrame({"text": [0, 1], "method": ["a", "b"], "value": random.random(2)})
    scores = [random.random(5).tolist() for _ in range(4)]
    yield pd.DataFrame({"method": list("abcd"), "place": range(4), "scores": scores})
    yield pd.DataFrame({"value": random.random(300)})


def flipped(content, place):
    changed = bytearray(content)
    changed[place // 8] ^= 1 << (place % 8)
    return bytes(changed)


@pytest.mark.slow
def test_no_flipped_bit_of_a_part_is_read(tmp_path):
    """All bits of small files in turn, as often as there are flips to make."""
    with Folder(tmp_path, {"seed": 0}) as folder:
        for name, frame in zip(NAMES, tables(), strict=True):
            folder.write(name, frame, {"refused": {}, "start": 1.5})
    random, made = np.random.default_rng(1), 0
    with Folder(tmp_path, {"seed": 0}) as folder:
        while made < FLIPS:
            for name in NAMES:
                file = folder._file(name)
                content = file.read_bytes()
                footer = 8 * (int.from_bytes(content[-8:-4], "little") + 8)
                bits = 8 * len(content)
                places = [
                    *random.integers(0, bits, 100),
                    *random.integers(bits - footer, bits, 100),
                ]
                for place in places:
                    file.write_bytes(flipped(content, int(place)))
                    with pytest.raises(ResultFileError):
                        folder.read(name)
                file.write_bytes(content)
                assert folder.read(name)[1] == {"refused": {}, "start": 1.5}
                made += len(places)


@pytest.mark.slow
@pytest.mark.parametrize("stage", ["finished", "stopped"])
def test_no_flipped_bit_changes_a_report(stage, tmp_path, monkeypatch):
    """One bit of any file of a folder; the same audit then gives the same report, or one line."""
    whole = small_audit(out=tmp_path / "whole", **SMALLEST)
    kept = tmp_path / "whole"
    if stage == "stopped":
        kept = tmp_path / "stopped"
        with monkeypatch.context() as patch:
            patch.setattr(Folder, "finish", stop)
            with pytest.raises(KeyboardInterrupt):
                small_audit(out=kept, **SMALLEST)
    random, told = np.random.default_rng(2), 0
    for number in range(AUDITS):
        folder = shutil.copytree(kept, tmp_path / str(number))
        files = sorted(path for path in folder.rglob("*") if path.is_file())
        file = files[random.integers(len(files))]
        content = file.read_bytes()
        if content:
            file.write_bytes(flipped(content, int(random.integers(8 * len(content)))))
        try:
            found = small_audit(out=folder, **SMALLEST)
        except AttlasError as problem:
            assert "\n" not in str(problem)
            told += 1
        else:
            assert without_times(found) == without_times(whole), file
        shutil.rmtree(folder)
    assert told < AUDITS


def stop(*_):
    raise KeyboardInterrupt
