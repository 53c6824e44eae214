"""The memory of a rolled-out row grows with the length of the input, not with its square."""

import subprocess
import sys

import pytest

# The peak of a process is never forgotten, so each length has one of its own.
PROGRAM = """
import sys
from pathlib import Path

import torch

import attlas
from attlas.models.rows import handed, handing

sys.path[:0] = ["tests"]
import tiny

length, maps = int(sys.argv[1]), sys.argv[2] == "maps"
torch.set_num_threads(1)
settings = {**tiny.LLAMA_SHAPE, "max_position_embeddings": 8192}
model, words = tiny.text_subject("Llama", "ForCausalLM", "bpe", **settings)
words.model_max_length = 8192
subject = attlas.Subject(model, words)
handed.SLICE_BYTES["cpu"] = 2**22
if maps:
    handing.LONG = 2**60


def peak():
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM"))


def explain(count):
    return attlas.explain(subject, [7] * count, "attention_rollout", maps=False)


explain(300)
before = peak()
explain(length)
print((peak() - before) / 1024)
"""
LENGTHS = (2048, 4096)
ROOM = 96  # MB at 4,096 tokens; one map of one layer there takes 256


def grown(length, form):
    """By how many MB a process grows beyond what a short input needs."""
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(length), form],
        capture_output=True,
        text=True,
        check=True,
    )
    return float(done.stdout)


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_a_rolled_out_row_takes_linear_memory():
    small, large = (grown(length, "rows") for length in LENGTHS)
    assert large < ROOM
    assert large < 3 * max(small, 4.0)  # with twice the tokens; a square would be four times


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_whole_maps_would_not_pass():
    assert grown(LENGTHS[-1], "maps") > ROOM
