"""Thousands of explanations in one process: what it holds does not grow."""

import os
from itertools import cycle, islice
from pathlib import Path

import pytest
from campaigning import times
from subjects import few
from tiny import subject_parts

import attlas
from attlas.methods import METHODS

TEXT = "the film was not good"
EXPLANATIONS = times(2_000, 200)
MOST = 16 * 2**20  # bytes that allocators may keep: under 10 kB for each explanation


def resident():
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="memory is read from /proc")
def test_explanations_leave_nothing_behind():
    own = attlas.Subject(*subject_parts("sequence classification"))

    def explain(names):
        for name in names:
            attlas.explain(own, TEXT, name, **few(name))
            own.attention(TEXT)

    explain(list(METHODS.names()) * 3)
    before = resident()
    explain(islice(cycle(METHODS.names()), EXPLANATIONS))
    assert resident() - before < MOST
