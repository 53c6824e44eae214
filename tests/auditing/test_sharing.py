"""An audit that several processes share: the same figures, and nothing done twice."""

import sys
from contextlib import contextmanager

import pytest
import torch
from audits import READINGS, REMOVALS, bag_texts, small_audit, without_times
from known_models import bag_of_words

from attlas.auditing import sharing
from attlas.auditing import texts as texts_of
from attlas.auditing.folder import Folder, JoinedFolder
from attlas.auditing.plan import plan_audit
from attlas.auditing.work.items import work_items
from attlas.errors import UsageError
from attlas.models.subject import Subject

MEASURES = ["comprehensiveness", "sufficiency", "sensitivity"]
TRIALS = ["uniform"]
ASKED = {"measures": MEASURES, "trials": TRIALS, "texts_for_slowest": 2}


@pytest.fixture(autouse=True)
def small_batches(monkeypatch):
    monkeypatch.setitem(texts_of.BATCH_SIZE, "cpu", 2)


def plan_of(seed=0):
    asked = {"removal": REMOVALS, "shuffles": 2, "texts_for_slowest": 2, "seed": seed}
    return plan_audit(bag_of_words(), bag_texts(6), READINGS, MEASURES, TRIALS, **asked)


def quiet(_):
    pass


def test_what_one_process_did_no_other_does(tmp_path):
    with Folder(tmp_path, plan_of().identity()) as mine:
        theirs = JoinedFolder(tmp_path, plan_of().identity()).__enter__()
        names = [item.name for item in work_items(plan_of())]
        assert (
            len(set(names)) == len(names) == 3 + 3 + 2 + 2
        )  # texts, sensitivity, uniform, unusualness
        assert theirs.claim(names[0]) and not mine.claim(names[0])
        seen = []
        sharing._do_unclaimed(plan_of(), mine, seen.append)
        assert len(seen) == len(names) - 1 and mine.written(names) == len(names) - 1
        assert [step.done for step in seen] == list(range(len(seen)))
        sharing._do_unclaimed(plan_of(), theirs, seen.append)
        assert len(seen) == len(names) - 1


def test_what_a_process_left_undone_is_done_in_the_end(tmp_path):
    said = []
    report = sharing.run_shared(
        plan_of(), tmp_path, 2, lambda folder: ["audit", "--modell"], quiet, said.append
    )
    assert without_times(report)["table"] == without_times(small_audit(**ASKED))["table"]
    (line,) = said
    assert line.startswith("one process ended early (") and "--modell" in line
    assert not list(tmp_path.glob("parts/*"))


def test_no_more_processes_start_than_there_are_pieces(tmp_path, monkeypatch):
    started = []

    @contextmanager
    def none(command, count):
        started.append(count)
        yield []

    monkeypatch.setattr(sharing, "_started", none)
    sharing.run_shared(plan_of(), tmp_path, 1000, lambda _: [], quiet, quiet)
    assert started == [len(work_items(plan_of())) - 1]


def test_claims_of_a_run_that_was_killed_are_forgotten(tmp_path):
    with Folder(tmp_path, {}) as folder:
        assert folder.claim("a") and not folder.claim("a")
    with Folder(tmp_path, {}) as folder:
        assert folder.claim("a")


def test_only_an_audit_with_the_same_settings_can_be_joined(tmp_path):
    with pytest.raises(UsageError, match="holds no audit to join"), JoinedFolder(tmp_path, {}):
        pass
    with (
        Folder(tmp_path, {"seed": 0}),
        pytest.raises(UsageError, match="seed is 0 there and 1 here"),
        JoinedFolder(tmp_path, {"seed": 1}),
    ):
        pass


def test_wrong_numbers(tmp_path):
    with pytest.raises(UsageError, match="workers are at least 1, not 0"):
        sharing.run_shared(plan_of(), tmp_path, 0, lambda _: [], quiet, quiet)


def usual(monkeypatch, kind, cores, free, batches):
    plan = plan_of()
    plan.__dict__["batches"] = [[0]] * batches
    pages = {"SC_AVPHYS_PAGES": free, "SC_PAGE_SIZE": 1}
    monkeypatch.setattr(Subject, "device", torch.device(kind))
    monkeypatch.setattr("os.cpu_count", lambda: cores)
    monkeypatch.setattr("torch.get_num_threads", lambda: cores)
    monkeypatch.setattr("torch.cuda.mem_get_info", lambda _: (free, 2**37))
    monkeypatch.setattr("os.sysconf", pages.__getitem__)
    return sharing.usual_workers(plan)


@pytest.mark.parametrize(
    ("cores", "free", "count"),
    [
        (16, 2**36, 3),
        (4, 2**36, 1),  # one is kept busy by each process
        (16, 2**33, 1),  # no room for three
    ],
)
def test_a_device_with_room_is_shared_by_three(monkeypatch, cores, free, count):
    assert usual(monkeypatch, "cuda", cores, free, 1) == count


@pytest.mark.parametrize(
    ("cores", "free", "batches", "count"),
    [
        (2, 2**36, 40, 2),
        (16, 2**36, 40, 4),
        (16, 2**34, 40, 3),  # each needs more than a quarter
        (16, 2**36, 3, 1),  # done before the others have started
    ],
)
def test_a_long_audit_is_shared_by_the_cores_of_a_processor(
    monkeypatch, cores, free, batches, count
):
    assert usual(monkeypatch, "cpu", cores, free, batches) == count


def test_who_starts_when_all_is_done_is_not_waited_for(tmp_path):
    slow = [sys.executable, "-c", "import time; time.sleep(600)"]
    with Folder(tmp_path, plan_of().identity()) as folder, sharing._started(slow, 1) as others:
        sharing._do_unclaimed(plan_of(), folder, quiet)
        sharing._wait(others, plan_of(), folder, quiet, pytest.fail)
        assert others[0].running()
    assert not others[0].running()
