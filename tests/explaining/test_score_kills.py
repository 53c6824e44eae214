"""explain_to, killed and asked again: every row once, and memory that does not grow."""

import csv
import os
import signal
import subprocess
import sys
from pathlib import Path
from random import Random

import pandas as pd
import pyarrow as pa
import pytest
from pyarrow import parquet

from attlas.data.generated.shortcuts import LABELS, TRIGGERS, plant, write_neutral

ROWS = 20_000
MEBIBYTE = 1024  # in the unit of VmRSS

# Tells after each part how many rows are done, and how much memory the process has.
WORK = """
import re, sys
import torch
import attlas

torch.set_num_threads(1)

def watch(step):
    if step.done:
        size = re.search(r"VmRSS:\\s+(\\d+)", open("/proc/self/status").read())[1]
        print(step.done, size, flush=True)

subject = attlas.load("shortcut_token")
written = attlas.explain_to(subject, sys.argv[1], sys.argv[2], "raw_attention", watch=watch)
print("written", written.rows, written.problems, written.earlier)
"""


IN_A_STORE = """
import sys
import attlas, stores
from attlas.explaining import writing_scores

writing_scores.CHUNK = 3
stores.DiskStore.fails = staticmethod(lambda path: print(path, flush=True))
written = attlas.explain_to(attlas.load("shortcut_token"), "reviews", sys.argv[1], "raw_attention")
print(written.rows, written.earlier)
"""


def write_texts(path, count):
    random = Random(0)
    with path.open("w", newline="") as stream:
        writer = csv.writer(stream)
        writer.writerow(["text", "label"])
        for number in range(count):
            planted = number % 2
            words = plant(write_neutral(random), [TRIGGERS[planted]], random)
            writer.writerow([" ".join([str(number), *words]), LABELS[1 + planted]])


def start(*given, code=WORK):
    command = [sys.executable, "-c", code, *map(str, given)]
    known = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=known)


def killed(data, out, new):
    """Kill a run after so many new parts; how many rows were done before it, and then."""
    with start(data, out) as process:
        told = [int(process.stdout.readline().split()[0]) for _ in range(new)]
        process.kill()
        process.wait()
        assert process.returncode == -signal.SIGKILL
        return told


def finished(data, out):
    """What a run that ends tells: rows done with the memory it had, and its last line."""
    with start(data, out) as process:
        *told, last = process.communicate()[0].splitlines()
        assert process.returncode == 0
        return [tuple(map(int, line.split())) for line in told], last.split()[1:]


@pytest.mark.slow
def test_killed_twice_it_has_every_row_once_and_the_same_as_an_undisturbed_run(tmp_path):
    data, out, whole = (tmp_path / name for name in ("texts.csv", "a.parquet", "b.parquet"))
    write_texts(data, 3000)
    assert killed(data, out, 1) == [512]
    assert killed(data, out, 3) == [512, 1024, 1536]
    told, last = finished(data, out)
    assert [done for done, _ in told][:4] == [512, 1024, 1536, 2048]
    assert last == ["3000", "0", "1536"]
    assert finished(data, whole)[1] == ["3000", "0", "0"]
    pd.testing.assert_frame_equal(pd.read_parquet(out), pd.read_parquet(whole), check_exact=True)
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "a.parquet", "b.parquet", "texts.csv",
    ]  # fmt: skip


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="memory is read from /proc")
def test_twenty_thousand_texts_in_flat_memory_killed_twice(tmp_path):
    data, out = tmp_path / "texts.csv", tmp_path / "scores.parquet"
    write_texts(data, ROWS)
    before = killed(data, out, 8)
    before = killed(data, out, len(before) + 8)
    told, last = finished(data, out)
    assert last == [str(ROWS), "0", str(before[-1])]
    sizes = [size for done, size in told if done > before[-1]]
    assert max(sizes) - sizes[0] < 100 * MEBIBYTE
    table = parquet.read_table(out)
    assert table.num_rows == ROWS
    assert table["row"].to_pylist() == [*range(ROWS)]
    assert len(table["text"].unique()) == ROWS
    assert pa.compute.all(pa.compute.is_valid(table["scores"])).as_py()


@pytest.mark.slow
def test_killed_twice_no_row_of_a_store_is_lost_or_done_twice(tmp_path):
    address = f"disk://{tmp_path}/scores.parquet"
    names = []
    for _ in range(2):
        with start(address, code=IN_A_STORE) as process:
            names += [process.stdout.readline() for _ in range(12)]
            process.kill()
            assert process.wait() == -signal.SIGKILL
            names += process.stdout.readlines()
    with start(address, code=IN_A_STORE) as process:
        rows, earlier = map(int, process.communicate()[0].splitlines()[-1].split())
    assert rows == 160 and 30 <= earlier < 160
    assert [*pd.read_parquet(tmp_path / "scores.parquet").row] == [*range(160)]
    done = [name.strip() for name in names if name.strip().endswith(".parquet")]
    assert len({*done}) >= len(done) - 2  # only one that a kill met is begun again
    assert [path.name for path in tmp_path.glob("[!.]*")] == ["scores.parquet"]
