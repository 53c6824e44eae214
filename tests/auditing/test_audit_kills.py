"""An audit that is killed, at any point: nothing that was finished is lost or done again."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from campaigning import times

TESTS = Path(__file__).parents[1]
KILLS = times(60, 3)

# Each item is logged when it begins, and by the name of its table when that is written.
AUDIT = """
import os, sys
import torch
from audits import small_audit
from attlas.auditing import texts
from attlas.auditing.folder import Folder
from attlas.auditing.work import items

torch.set_num_threads(1)
texts.BATCH_SIZE["cpu"] = 1
log = open(sys.argv[2], "a", buffering=1)
explain, again, write = items.explain_batch, items.measure_method, Folder.write

def explain_batch(plan, numbers, drafts, tell):
    batches[:] = plan.batches
    print("begun values", numbers[0], file=log)
    return explain(plan, numbers, drafts, tell)

def measure_method(plan, measure, method):
    print("begun robustness", measure.name, method, file=log)
    return again(plan, measure, method)

def written(folder, name, *others):
    write(folder, name, *others)
    kind, _, rest = name.partition(" ")
    if kind == "values":
        rest = str(batches[int(rest)][0])
    print("ended", kind, rest, file=log)

def watch(step):
    print(step.what, flush=True)

items.explain_batch, items.measure_method = explain_batch, measure_method
Folder.write = written
asked = {"measures": ["comprehensiveness", "sufficiency", "sensitivity"], "texts_for_slowest": 4}
batches = []
small_audit(out=sys.argv[1], watch=watch, **asked)
"""


def start(folder, log):
    command = [sys.executable, "-c", AUDIT, str(folder), str(log)]
    known = {**os.environ, "PYTHONPATH": os.pathsep.join([str(TESTS), *sys.path[1:]])}
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=known)


def killed(folder, log, wait):
    """Whether the run was killed so long after its first step; it may have ended before."""
    with start(folder, log) as process:
        process.stdout.readline()
        try:
            process.wait(wait)
        except subprocess.TimeoutExpired:
            process.kill()
        said = process.communicate()[1]
        assert process.returncode in (0, -signal.SIGKILL), said.decode()
        return process.returncode != 0


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


@pytest.mark.slow
def test_killed_at_random_points_it_loses_and_repeats_nothing(tmp_path):
    whole = tmp_path / "whole"
    with start(whole, tmp_path / "whole.log") as process:
        process.stdout.readline()
        begun = time.monotonic()
        said = process.communicate()[1]
        assert process.returncode == 0, said.decode()
    lasts = time.monotonic() - begun
    random, kills, runs = np.random.default_rng(0), 0, 0
    while kills < KILLS:
        folder, log = tmp_path / f"run {runs}", tmp_path / f"run {runs}.log"
        while killed(folder, log, random.uniform(0, lasts) if kills < KILLS else None):
            kills += 1
        assert repeated(log) == []
        found, wanted = (pd.read_parquet(each / "results.parquet") for each in (folder, whole))
        pd.testing.assert_frame_equal(found, wanted, check_exact=True)
        assert report_of(folder) == report_of(whole)
        assert sorted(each.name for each in folder.iterdir()) == sorted(
            each.name for each in whole.iterdir()
        )
        runs += 1
