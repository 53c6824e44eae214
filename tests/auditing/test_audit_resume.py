"""An audit that is stopped: it goes on where it was, and ends as if nothing had been."""

import errno
import json
import os
from contextlib import contextmanager
from functools import cache

import pytest
from audits import bag_texts, small_audit, without_times
from known_models import bag_of_words, ignores_attention

from attlas.auditing import texts as texts_of
from attlas.auditing.folder import Folder
from attlas.auditing.work import items
from attlas.errors import ResultFileError, UsageError

ASKED = {
    "measures": ["comprehensiveness", "sufficiency", "sensitivity"],
    "removal": ["mask"],
    "methods": ["raw_attention"],
    "texts_for_slowest": 2,
}
BATCHES, AGAIN = 3, 2  # of two texts each; sensitivity of the weights, and of random numbers
ITEMS = BATCHES + AGAIN + 2  # how strange the texts are under each removal


class Stopped(Exception):
    """What stops an audit."""


@pytest.fixture(autouse=True)
def small_batches(monkeypatch):
    monkeypatch.setitem(texts_of.BATCH_SIZE, "cpu", 2)


@pytest.fixture
def work(monkeypatch):
    """What was worked out, in order: the first text of a batch, or a measure and a method."""
    never_stopped()  # worked out before anything is counted
    done = []
    explain, measure_again = items.explain_batch, items.measure_method

    def explain_batch(plan, numbers, drafts, tell):
        done.append(numbers[0])
        return explain(plan, numbers, drafts, tell)

    def measure_method(plan, measure, method):
        done.append((measure.name, method))
        return measure_again(plan, measure, method)

    monkeypatch.setattr(items, "explain_batch", explain_batch)
    monkeypatch.setattr(items, "measure_method", measure_method)
    return done


def stop_at(place):
    def watch(step):
        if step.done == place:
            raise Stopped(step.what)

    return watch


@cache
def never_stopped():
    return without_times(small_audit(**ASKED))


@contextmanager
def full_disk(after):
    """So many files can be written, and then no more."""
    written, usual = 0, os.fsync

    def fsync(descriptor):
        nonlocal written
        written += 1
        if written > after:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        usual(descriptor)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", fsync)
        yield


def test_stopped_before_every_step_it_ends_the_same_and_repeats_nothing(tmp_path, work):
    wanted = never_stopped()
    for place in range(BATCHES + AGAIN + 1):
        with pytest.raises(Stopped):
            small_audit(**ASKED, out=tmp_path, watch=stop_at(place))
        assert len(work) == place
    assert without_times(small_audit(**ASKED, out=tmp_path)) == wanted
    assert len(work) == len(set(work)) == BATCHES + AGAIN


def test_stopped_within_a_batch_only_that_batch_is_done_again(tmp_path, work, monkeypatch):
    usual = items.measure_batch

    def measure_batch(*given):
        if len(work) == 2:
            raise Stopped
        return usual(*given)

    with monkeypatch.context() as patch, pytest.raises(Stopped):
        patch.setattr(items, "measure_batch", measure_batch)
        small_audit(**ASKED, out=tmp_path)
    assert without_times(small_audit(**ASKED, out=tmp_path)) == never_stopped()
    assert [work.count(each) for each in dict.fromkeys(work)][:BATCHES] == [1, 2, 1]


@pytest.mark.parametrize("after", [0, 9, 20])  # at once, within a batch, with the last file
def test_a_full_disk_is_one_clear_error_and_what_is_done_stays(after, tmp_path, work):
    """The manifest twice, the tables of each batch and of robustness, the report, the results."""
    with full_disk(after), pytest.raises(ResultFileError, match=r"cannot write .*No space left"):
        small_audit(**ASKED, out=tmp_path)
    before = list(work)
    small = without_times(small_audit(**ASKED, out=tmp_path))
    assert small == never_stopped()
    finished = min(BATCHES, max(0, after - 2) // len(items.BATCH_TABLES))
    repeated = [each for each in dict.fromkeys(work) if work.count(each) > 1]
    assert not set(repeated) & set(before[:finished]) and len(repeated) <= 1


def test_a_finished_folder_gives_its_report_and_the_model_is_not_asked(tmp_path, work, monkeypatch):
    first = small_audit(**ASKED, out=tmp_path)
    work.clear()
    monkeypatch.setattr(bag_of_words().model, "forward", None)
    again = small_audit(**ASKED, out=tmp_path)
    assert again.to_dict() == first.to_dict() and work == []
    assert json.loads((tmp_path / "manifest.json").read_text("utf-8"))["done"] is True


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"seed": 1}, "seed is 0 there and 1 here"),
        ({"shuffles": 3}, "shuffles is 2 there and 3 here"),
        ({"removal": ["delete"]}, 'removals.1 is "mask" there and "delete" here'),
        (
            {"methods": ["attention_rollout"]},
            'methods.1 is "raw_attention" there and "attention_ro',
        ),
        ({"data": bag_texts(5)}, "texts is "),
        ({"subject": ignores_attention()}, "weights is "),
    ],
)
def test_another_audit_is_refused_by_the_first_that_differs(change, message, tmp_path):
    with pytest.raises(Stopped):
        small_audit(**ASKED, out=tmp_path, watch=stop_at(0))
    with pytest.raises(UsageError, match=f"holds an audit with other settings: {message}"):
        small_audit(**{**ASKED, **change}, out=tmp_path)


def test_a_folder_that_cannot_be_is_one_clear_error_before_any_work(tmp_path, work):
    with Folder(tmp_path / "used", {}), pytest.raises(UsageError, match="in use by another run"):
        small_audit(**ASKED, out=tmp_path / "used")
    (tmp_path / "file").write_text("mine")
    with pytest.raises(UsageError, match="a file of that name exists"):
        small_audit(**ASKED, out=tmp_path / "file")
    with pytest.raises(ResultFileError, match="cannot make the folder"):
        small_audit(**ASKED, out="/proc/attlas")
    assert work == [] and (tmp_path / "file").read_text() == "mine"


def test_progress_says_what_is_being_done(tmp_path):
    steps = []
    small_audit(**ASKED, watch=steps.append)
    done = [step.done for step in steps]
    assert done == sorted(done) and set(done) == set(range(ITEMS + 1))
    assert {step.total for step in steps} == {ITEMS}
    assert steps[0].what == "texts, batch 1 of 3" and steps[-1].what == "the report"
    said = [step.what for step in steps]
    assert "sensitivity of raw_attention" in said
    assert "texts, batch 2 of 3: raw_attention" in said
    assert "texts, batch 2 of 3: tokens removed by mask" in said
