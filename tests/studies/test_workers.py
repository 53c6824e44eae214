"""The parts of a study, found by running it without them and computed one by one."""

import json

import pytest

from attlas.errors import UsageError
from attlas.studies.support import workers
from attlas.studies.support.run import Run
from attlas.studies.support.study import Study
from attlas.studies.support.workers import PartialRun, StudyWork

SETTINGS = {"seeds": 3}
computed = []


def in_two_rounds(run, *, seeds=3):
    """Three parts that depend on nothing, then one that depends on them."""

    def square(number):
        computed.append(number)
        return {"square": number * number}

    found = [run.kept(f"seed {seed}", lambda seed=seed: square(seed)) for seed in range(seeds)]
    total = sum(each["square"] for each in found)
    return run.kept("total", lambda: {"total": total + len(computed) * 0})["total"]


STUDY = Study("in_two_rounds", in_two_rounds, "", "", "")


@pytest.fixture(autouse=True)
def known(monkeypatch):
    computed.clear()
    monkeypatch.setattr(workers, "STUDIES", {STUDY.name: STUDY})


def scout(folder):
    return PartialRun(STUDY.name, SETTINGS, folder, "cpu", lambda step: None).go(STUDY)


def compute(folder, names):
    parts = folder / "parts"
    parts.mkdir(exist_ok=True)
    texts = {each.name: each.read_text() for each in parts.glob("*.json")}
    do = StudyWork(STUDY.name, SETTINGS, "cpu", texts).begin(None)
    for name in names:
        (parts / name).write_text(do(name))


def test_parts_are_found_in_rounds_and_each_is_computed_once(tmp_path):
    first = scout(tmp_path)
    assert [name.rsplit("-", 1)[0] for name in first] == [
        *("in_two_rounds-seed-0", "in_two_rounds-seed-1", "in_two_rounds-seed-2")
    ]
    assert computed == []
    compute(tmp_path, reversed(first))
    assert computed == [2, 1, 0]
    (last,) = scout(tmp_path)
    assert last.startswith("in_two_rounds-total-")
    compute(tmp_path, [last])
    assert scout(tmp_path) == [] and computed == [2, 1, 0]
    run = Run(STUDY.name, SETTINGS, tmp_path, "cpu", lambda step: None)
    assert in_two_rounds(run) == 5 and computed == [2, 1, 0]
    (part,) = (tmp_path / "parts").glob("*seed-2*")
    assert json.loads(part.read_text())["found"] == {"square": 4}


def test_a_mistake_before_the_first_part_is_told(tmp_path):
    def wrong(run):
        raise UsageError("no such data")

    study = Study("wrong", wrong, "", "", "")
    with pytest.raises(UsageError, match="no such data"):
        PartialRun("wrong", {}, tmp_path, "cpu", lambda step: None).go(study)


def test_a_part_that_fails_is_told(tmp_path):
    def failing(run):
        run.kept("one", lambda: 1)
        run.kept("two", lambda: 1 / 0)

    study = Study("failing", failing, "", "", "")
    one, two = PartialRun("failing", {}, tmp_path, "cpu", lambda step: None).go(study)
    run = PartialRun("failing", {}, tmp_path, "cpu", lambda step: None, chosen=two)
    with pytest.raises(ZeroDivisionError):
        run.go(study)
    assert one != two
