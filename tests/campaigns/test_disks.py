"""Disks that are full or read-only: one line, and the work goes on once there is room.

The limit of a file's size is the system's own: a write that would pass it fails, as on a full disk.
"""

import resource
from contextlib import contextmanager
from pathlib import Path

import pytest
from audits import SMALLEST, small_audit, without_times
from subjects import subject

import attlas
from attlas.errors import AttlasError

ROOM = [0, 1, 12, 64, 700, 2_000]  # bytes; every work writes more
TEXTS = ["the film was not good", "a cat sat", "my dog was not kind"]


@contextmanager
def room(size):
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def audited(place):
    return without_times(small_audit(out=place / "audit", **SMALLEST))


def written(place):
    own = subject("sequence classification")
    attlas.explain_to(own, TEXTS, place / "scores.parquet", "raw_attention")
    return (place / "scores.parquet").is_file()


def saved(place):
    own = subject("sequence classification")
    explanation = attlas.explain(own, TEXTS[0], "raw_attention")
    explanation.save(place / "one.attlas")
    explanation.to_html(place / "one.html")
    return attlas.Explanation.load(place / "one.attlas").scores.tolist()


WORK = {"audit": audited, "scores": written, "result": saved}


@pytest.mark.slow
@pytest.mark.parametrize("name", WORK)
@pytest.mark.parametrize("size", ROOM)
def test_a_full_disk_is_one_line_and_work_goes_on_later(name, size, tmp_path):
    work = WORK[name]
    (tmp_path / "whole").mkdir()
    (tmp_path / "full").mkdir()
    whole = work(tmp_path / "whole")
    with room(size), pytest.raises(AttlasError) as told:
        work(tmp_path / "full")
    assert "\n" not in str(told.value) and len(str(told.value)) < 2_000
    assert work(tmp_path / "full") == whole
    names = [
        sorted(str(each.relative_to(place)) for each in place.rglob("*"))
        for place in (tmp_path / "full", tmp_path / "whole")
    ]
    assert names[0] == names[1]


@pytest.mark.slow
@pytest.mark.parametrize("name", WORK)
def test_a_place_that_cannot_be_written_to_is_one_line(name):
    place = Path("/proc/self")
    if not place.is_dir():
        pytest.skip("no folder that nobody can write to")
    with pytest.raises(AttlasError) as told:
        WORK[name](place)
    assert "\n" not in str(told.value)
