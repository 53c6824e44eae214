"""Processes of this machine as workers: every piece is done once, whatever becomes of a process."""

import os
import pickle
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import attlas
from attlas.engine import processes
from attlas.engine.cluster import WorkerShare, connected
from attlas.engine.pool import WorkerPool
from attlas.engine.worker import Work
from attlas.errors import ModelError, UsageError
from attlas.methods import METHODS

ENGINE = attlas.Engine("local", workers=2)


class Odd(Work):
    """Squares numbers; some end their process, once or always, and some cannot be squared."""

    def __init__(self, folder):
        self.folder = folder

    def begin(self, subject):
        return self.square

    def square(self, number):
        mark = Path(self.folder) / str(number)
        if number == 13:
            raise UsageError("13 has no luck")
        if number == 666 or (number == 7 and not mark.exists()):
            mark.touch()
            os._exit(3)
        print("what a library prints is no answer")
        return number * number


@pytest.fixture(autouse=True)
def own_path(monkeypatch):
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(each for each in sys.path if each))


def results(folder, pieces):
    with connected(ENGINE) as processes:
        pool = WorkerPool(processes, WorkerShare(2, 1, 0), Odd(folder), None)
        return list(pool.results([(str(each), each) for each in pieces])), pool.state()


def test_every_piece_is_done_once_although_a_process_ends(tmp_path):
    found, state = results(tmp_path, range(12))
    assert {int(name): value for name, value in found} == {n: n * n for n in range(12)}
    assert len(found) == 12 and state.endswith("1 lost and replaced")


def test_an_error_of_a_piece_is_its_result(tmp_path):
    ((_, error),) = results(tmp_path, [13])[0]
    assert isinstance(error, UsageError) and str(error) == "13 has no luck"


def test_a_piece_that_ends_every_process_is_told(tmp_path):
    told = "666 ended 3 workers, the last with: ProcessEndedError: a process ended with 3"
    with pytest.raises(ModelError, match=told):
        results(tmp_path, [666])


def test_every_method_goes_to_a_process():
    for each in METHODS:
        assert pickle.loads(pickle.dumps(each)) is each


@pytest.mark.parametrize(("method", "count"), [("raw_attention", 1100), ("leave_one_out", 70)])
def test_processes_write_what_one_writes(tmp_path, method, count):
    own, texts = attlas.load("shortcut_token"), [f"{n} a warm film" for n in range(count)]
    files = [tmp_path / "one.parquet", tmp_path / "two.parquet"]
    for file, engine in zip(files, ("local", ENGINE), strict=True):
        written = attlas.explain_to(own, texts, file, method, engine=engine)
        assert (written.rows, written.problems, written.earlier) == (count, 0, 0)
    one, two = map(pd.read_parquet, files)
    assert one.drop(columns="scores").equals(two.drop(columns="scores"))
    for found, expected in zip(two.scores, one.scores, strict=True):
        np.testing.assert_allclose(found, expected, atol=1e-6)


def test_a_process_ends_with_the_one_that_started_it():
    script = (
        "import time\n"
        "from attlas.engine.processes import Processes\n"
        "started = Processes().remote()(dict).remote()\n"
        "print(started._process.pid, flush=True)\n"
        "time.sleep(60)\n"
    )
    with subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE) as parent:
        number = int(parent.stdout.readline())
        parent.kill()
    for _ in range(300):
        if not is_running(number):
            return
        time.sleep(0.1)
    raise AssertionError("it still runs")


def is_running(number):
    try:
        return "Z" not in Path(f"/proc/{number}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return False


def test_what_python_prints_at_its_start_is_no_answer(tmp_path, monkeypatch):
    """Its first eight signs would be the length of an answer that never comes."""
    (tmp_path / "sitecustomize.py").write_text("print('a greeting', flush=True)")
    paths = [str(tmp_path), os.environ["PYTHONPATH"]]
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(paths))
    started = processes.Processes()
    try:
        worker = started.remote()(dict).remote([("a", 3)])
        answer = worker.get.remote("a")
        ready, _ = started.wait([answer], timeout=60)
        assert ready and started.get(answer) == 3
    finally:
        started.shutdown()
