"""What each method costs: seconds and megabytes, over lengths and layers.

    python benchmarks/costs.py [--device cuda] [--seconds 50] [--only METHOD]... [--missing]
                               [--out FILE]

The model is a decoder of grouped heads in the shape of SmolLM2, with as many layers as are asked
for and random weights, in float32. A figure is the second call of `attlas.explain` at this length,
without maps. A method that took long is not asked at greater lengths and depths; what was not
measured when the time is up is left out. Each row goes to FILE (`benchmarks/costs.json` if not
given) when it is there, in the place of its like; `--missing` leaves out those that were made on
this machine with this very code. `python benchmarks/costs_page.py FILE...` makes the table and the
plot of docs/performance.md.
"""

import argparse
import json
import sys
import time
from collections.abc import Iterator, Sequence
from itertools import product
from math import inf
from pathlib import Path

import torch
from comparing import Setup
from costs_page import COST
from rows import Record, made_here, put
from run import where
from shapes import number_words, random_ids, smollm

import attlas
from attlas.errors import AttlasError
from attlas.methods import METHODS

RESULTS = Path(__file__).parent / "costs.json"
LAYERS = {"cpu": (2, 8, 30), "cuda": (8, 30, 80)}
LENGTHS = {"cpu": (16, 64, 256), "cuda": (64, 256, 1024)}
TOO_LONG = {"cpu": 3.0, "cuda": 1.5}  # seconds: what is larger is not asked any more
GROWTH = 3.0  # how many times as long the next larger cell is taken to be


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--seconds", type=float, default=600.0, help="when to stop")
    parser.add_argument("--only", action="append", choices=METHODS.names(), metavar="METHOD")
    parser.add_argument("--missing", action="store_true")
    parser.add_argument("--out", type=Path, default=RESULTS)
    given = parser.parse_args()
    setup, facts = Setup(given.device), where(given.device)
    end = time.monotonic() + given.seconds
    there = made_here(given.out, facts) if given.missing else []
    for row in measure(setup, given.only or METHODS.names(), end, there):
        put(given.out, [{**facts, **row}], COST)
        print(json.dumps(row), file=sys.stderr, flush=True)


def measure(
    setup: Setup, names: Sequence[str], end: float, there: Sequence[Record] = ()
) -> Iterator[Record]:
    """A row for each method, length and depth that is not there; the small ones first."""
    kind = "cuda" if setup.on_gpu else "cpu"
    subjects = {
        layers: attlas.Subject(smollm("sdpa", layers).to(setup.device), number_words())
        for layers in LAYERS[kind]
    }
    cells = sorted(product(LAYERS[kind], LENGTHS[kind]), key=lambda cell: (cell[0] * cell[1], cell))
    known = {(each["method"], each["layers"], each["tokens"]): taken(each) for each in there}
    for (layers, tokens), name in product(cells, names):
        if (name, layers, tokens) in known:
            continue
        below = [
            known.get((name, depth, length), 0.0)
            for depth, length in cells
            if depth <= layers and length <= tokens
        ]
        least = max(below, default=0.0)
        if least > TOO_LONG[kind] or time.monotonic() + 2 * GROWTH * least > end:
            known[name, layers, tokens] = inf
            continue
        row = cell(setup, subjects[layers], name, tokens)
        known[name, layers, tokens] = taken(row)
        yield {"method": name, "layers": layers, "tokens": tokens, **row}


def taken(row: Record) -> float:
    """The seconds of a cell; no end where the method was refused."""
    return inf if row["seconds"] is None else float(row["seconds"])


def cell(setup: Setup, subject: attlas.Subject, name: str, tokens: int) -> Record:
    """The second call of a method at a length."""
    ids = random_ids(tokens)

    def work() -> object:
        return attlas.explain(subject, ids, name, maps=False)

    try:
        work()
        seconds, megabytes = setup.peak(work)
    except (AttlasError, RuntimeError, MemoryError) as problem:
        return {"seconds": None, "megabytes": None, "note": str(problem).splitlines()[0][:120]}
    finally:
        if setup.on_gpu:
            torch.cuda.empty_cache()
    return {"seconds": round(seconds, 5), "megabytes": round(megabytes, 2), "note": ""}


if __name__ == "__main__":
    main()
