"""An audit that is killed, at any point: nothing that was finished is lost or done again."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from campaigning import times

TESTS = Path(__file__).parents[1]
KILLS = times(100, 3)
IN_A_WRITE = 0.6  # the share of kills inside a write


@pytest.fixture
def run():
    """Run an audit in a process of its own, and kill it as asked."""
    known = {**os.environ, "PYTHONPATH": os.pathsep.join([str(TESTS), *sys.path[1:]])}
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    script = str(Path(__file__).with_name("kill_server.py"))
    with subprocess.Popen([sys.executable, script], text=True, env=known, **pipes) as server:

        def ask(folder, wait=None, write=None):
            log = folder.with_suffix(".log")
            job = {"folder": str(folder), "log": str(log), "wait": wait, "write": write}
            print(json.dumps(job), file=server.stdin, flush=True)
            status, moments, seconds = json.loads(server.stdout.readline())
            assert status in (0, -signal.SIGKILL), server.communicate()[1]
            return status != 0, moments, seconds

        yield ask
        assert "Traceback" not in server.communicate()[1]


def repeated(log):
    """The parts that were begun after they had ended."""
    ended, again = set(), []
    for line in log.read_text().splitlines():
        what, _, part = line.partition(" ")
        if what == "ended":
            ended.add(part)
        elif part in ended:
            again.append(part)
    assert ended
    return again


def report_of(folder):
    record = json.loads((folder / "report.json").read_text("utf-8"))
    return {name: value for name, value in record.items() if name not in ("seconds", "costs")}


def names_in(folder):
    return sorted(str(each.relative_to(folder)) for each in folder.rglob("*"))


def assert_same(folder, whole):
    assert repeated(folder.with_suffix(".log")) == []
    found, wanted = (pd.read_parquet(each / "results.parquet") for each in (folder, whole))
    pd.testing.assert_frame_equal(found, wanted, check_exact=True)
    assert report_of(folder) == report_of(whole)
    assert names_in(folder) == names_in(whole)


@pytest.mark.slow
def test_killed_at_random_points_it_loses_and_repeats_nothing(tmp_path, run):
    whole = tmp_path / "whole"
    was_killed, moments, lasts = run(whole)
    assert not was_killed and moments > 20
    random, kills, runs = np.random.default_rng(0), 0, 0
    while kills < KILLS:
        folder = tmp_path / f"run{runs}"
        was_killed = True
        while was_killed:
            how = {}
            if kills < KILLS and random.random() < IN_A_WRITE:
                how = {"write": int(random.integers(1, moments // 2))}
            elif kills < KILLS:
                how = {"wait": float(random.uniform(0, lasts))}
            was_killed = run(folder, **how)[0]
            kills += was_killed
        assert_same(folder, whole)
        runs += 1
