"""Attention flow by itself: one row for several shapes, and what all rows of a map share.

    python benchmarks/flow.py

Random attention with rows that sum to one; half of each layer bypasses it. One row goes from the
last position of the highest layer to every token; for maps of all rows, the share of the pairs that
need no search of their own. Times are processor times in one process. `python benchmarks/run.py
--only flow` compares the whole call with networkx.
"""

import argparse
import time
from collections.abc import Callable
from statistics import median

import numpy as np

from attlas.methods.support.flow import SCALE, lay_stack
from attlas.methods.support.flow_maps import shared_flows

LARGER = ((12, 32), (12, 128), (12, 256))
WHOLE_MAPS = ((2, 197), (4, 197), (6, 197), (12, 197))


def random_layers(depth: int, size: int, causal: bool = False) -> list[np.ndarray]:
    """The mean of some heads with sharp rows, like those of trained models."""
    scores = 2 * np.random.default_rng(0).standard_normal((depth, 8, size, size))
    seen = np.tri(size, dtype=bool) if causal else np.ones((size, size), dtype=bool)
    weights = np.exp(scores) * seen
    return list((weights / weights.sum(axis=-1, keepdims=True)).mean(axis=1))


def ours(layers: list[np.ndarray], top: int) -> np.ndarray:
    pipes = lay_stack(layers, 0.5, len(layers[0]))
    return pipes.flows(top, range(len(layers[0])))


def seconds(work: Callable[[], object], rounds: int) -> float:
    times = []
    for _ in range(rounds):
        start = time.process_time()
        work()
        times.append(time.process_time() - start)
    return median(times)


def tell_whole_map(depth: int, size: int) -> None:
    """How long the shared part takes, what it leaves, and how long one row takes by search."""
    pipes = lay_stack(random_layers(depth, size), 0.5, size)
    start = time.process_time()
    shared = shared_flows(pipes.joins, range(size)) / SCALE
    took = time.process_time() - start
    start = time.process_time()
    searched = pipes.flows(0, range(size))
    a_row = time.process_time() - start
    known = ~np.isnan(shared)
    apart = np.abs(shared[0] - searched)[known[0]].max(initial=0)
    print(
        f"all rows of {depth} x {size}: {known.mean():.0%} known after {took:.2f} s, {apart:.1e} "
        f"away; by search {size * a_row:.0f} s (one row {a_row:.2f} s)"
    )


def main() -> None:
    argparse.ArgumentParser(description=__doc__.splitlines()[0]).parse_args()
    for depth, size in LARGER:
        for causal in (False, True):
            layers = random_layers(depth, size, causal)
            took = seconds(lambda layers=layers, size=size: ours(layers, size - 1), 1)
            kind = "causal" if causal else "whole"
            print(f"one row of {depth} x {size}, {kind:<6}: ours {took:.3f} s")
    for depth, size in WHOLE_MAPS:
        tell_whole_map(depth, size)


if __name__ == "__main__":
    main()
