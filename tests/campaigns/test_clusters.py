"""Work on a Ray cluster that loses nodes, workers and drivers: the same results, nothing twice."""

import json
import os
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path
from time import sleep

import numpy as np
import psutil
import pytest
from audits import without_times
from campaigning import times

import attlas
from attlas.engine.pool import WorkerPool
from attlas.explaining import writing_scores
from attlas.explaining.score_parts import ScoreParts

cluster_utils = pytest.importorskip(
    "ray.cluster_utils", reason="Ray is not installed: pip install 'attlas[ray]'"
)
STORE = 80 * 2**20
KILLS = times(10, 2)
TEXTS = 2400


@pytest.fixture(scope="module")
def cluster():
    """A head and a second node, one core each."""
    quiet = {"num_cpus": 1, "object_store_memory": STORE, "include_dashboard": False}
    found = cluster_utils.Cluster(initialize_head=True, head_node_args=quiet)
    yield found
    found.shutdown()


def added(cluster):
    return cluster.add_node(num_cpus=1, object_store_memory=STORE)


def texts():
    return [f"{number} zap" if number % 2 else f"a plain film {number}" for number in range(TEXTS)]


@pytest.fixture
def noted(monkeypatch):
    """The parts that are handed to workers and those that are written, in their order."""
    handed, written = [], []
    hand_out, write = WorkerPool._hand_out, ScoreParts.write

    def note_handed(pool):
        before = {ref for slot in pool._slots for ref in slot.handed}
        hand_out(pool)
        new = [
            (ref, piece.name) for slot in pool._slots for ref, piece in slot.handed.items()
            if ref not in before
        ]  # fmt: skip
        handed.extend(int(name) for _, name in new)

    def note_written(parts, number, *given):
        write(parts, number, *given)
        written.append(number)

    monkeypatch.setattr(WorkerPool, "_hand_out", note_handed)
    monkeypatch.setattr(ScoreParts, "write", note_written)
    return handed, written


@pytest.mark.slow
def test_a_node_is_killed_in_the_middle(cluster, noted, tmp_path, monkeypatch):
    monkeypatch.setattr(writing_scores, "CHUNK", 24)
    handed, written = noted
    second = added(cluster)
    subject = attlas.load("shortcut_token")
    here, there = tmp_path / "here.parquet", tmp_path / "there.parquet"
    attlas.explain_to(subject, texts(), here, "attention_rollout")
    handed.clear()
    written.clear()
    at_kill = []

    def watch(step):
        both = step.what.endswith("; 2 workers")
        sleep(0 if both or at_kill else 0.5)  # the second one may be slow to begin
        if both and step.done > TEXTS / 8 and not at_kill:
            at_kill.extend(written)
            cluster.remove_node(second, allow_graceful=False)
            added(cluster)

    engine = attlas.Engine("ray", cluster.address, workers=2)
    found = attlas.explain_to(
        subject, texts(), there, "attention_rollout", engine=engine, watch=watch
    )
    assert at_kill, "both workers were never there at once"
    assert (found.rows, found.problems) == (TEXTS, 0)
    assert there.read_bytes() == here.read_bytes()
    assert sorted(written) == [*range(TEXTS // 24)]
    again = {number for number, count in Counter(handed).items() if count > 1}
    assert 1 <= len(again) <= writing_scores.AHEAD
    assert not again & set(at_kill)


AUDIT = {
    "quick": True,
    "count": 40,
    "methods": ["raw_attention", "gradient"],
    "measures": ["location", "sensitivity"],
    "trials": ["uniform", "permutation"],
    "texts_for_slowest": 4,
}
DRIVER = """
import json, sys
import torch
import attlas
from attlas.auditing import texts

torch.set_num_threads(1)
texts.BATCH_SIZE["cpu"] = 4
folder, address, asked = sys.argv[1], sys.argv[2], json.loads(sys.argv[3])
engine = attlas.Engine("ray", address, workers=2) if address else "local"

def watch(step):
    if step.total:
        print("step", step.done, step.what, flush=True)

attlas.audit(attlas.load("sentiment"), "reviews", out=folder, engine=engine, watch=watch, **asked)
"""


def start(folder, address=""):
    known = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path[1:])}
    command = [sys.executable, "-c", DRIVER, str(folder), address, json.dumps(AUDIT)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=known)


def kill_a_worker(cluster):
    """End one process that holds a model, as the system does when memory runs out."""
    for node in cluster.list_all_nodes():
        (raylet,) = node.all_processes["raylet"]
        for process in psutil.Process(raylet.process.pid).children(recursive=True):
            if " ".join(process.cmdline()).startswith("ray::Worker"):
                process.send_signal(signal.SIGKILL)
                return True
    return False


def report_of(folder):
    return without_times(
        attlas.results.Report.from_dict(json.loads((Path(folder) / "report.json").read_text()))
    )


def killed_until_done(folder, cluster, kills, random):
    """Run an audit again and again, and kill it, or on Ray one of its workers, as it works."""
    done, left, address = 0, kills, "" if cluster is None else cluster.address
    while True:
        at = int(random.integers(done + 1, done + 5)) if left else None
        with start(folder, address) as driver:
            for line in driver.stdout:
                if not line.startswith("step "):
                    continue  # Ray writes lines of its own there
                _, told, what = line.split(maxsplit=2)
                if what.startswith(("joining", "work of")):
                    assert int(told) >= done, "what was done is done again"
                    done = int(told)
                elif not address:
                    done = int(told)  # what was done before is passed by
                if at is not None and done >= at:
                    at, left = None, left - 1
                    if not address or random.random() < 0.5 or not kill_a_worker(cluster):
                        driver.kill()
        if driver.returncode == 0:
            return kills - left
        assert driver.returncode == -signal.SIGKILL


@pytest.mark.slow
@pytest.mark.parametrize("where", ["ray", "local"])
def test_an_audit_that_is_killed_again_and_again_gives_the_same_report(cluster, where, tmp_path):
    whole = tmp_path / "whole"
    with start(whole) as driver:
        driver.communicate()
    assert driver.returncode == 0
    used = cluster if where == "ray" else None
    if used is not None:
        added(cluster)
    random, kills = np.random.default_rng(0), 0
    while kills < KILLS:
        folder = tmp_path / f"run{kills}"
        kills += killed_until_done(folder, used, min(5, KILLS - kills), random)
        assert report_of(folder) == report_of(whole)
