"""Run every comparison: ours, a peer, the ratio, and how far the results are apart.

    python benchmarks/run.py [--device cuda] [--only NAME]... [--small] [--missing] [--out FILE]

The comparisons are the files of `benchmarks/comparisons`. Ours is the call that a user makes;
beside it stands the function inside, where that is instructive. The script prints a table and
writes each row to FILE (`benchmarks/results.json` if not given) when it is there, in the place of
its like. Once a comparison has ended, no other row of it stays. `--missing` leaves out those that
ended on this machine with this very code. `--small` takes little time and shows that everything
works; its ratios say little. `python benchmarks/tables.py FILE...` puts the rows of other machines
into `results.json`, and all of them into docs/performance.md.
"""

import argparse
import os
import platform
import sys
import traceback
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, replace
from datetime import UTC, datetime
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules
from typing import Any

from rows import Record, code, made_here, read, write
from tables import RESULTS, markdown, merged

COMPARISONS = tuple(
    sorted(each.name for each in iter_modules([str(Path(__file__).parent / "comparisons")]))
)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--only", action="append", choices=COMPARISONS, metavar="NAME")
    parser.add_argument("--small", action="store_true")
    parser.add_argument("--missing", action="store_true")
    parser.add_argument("--out", type=Path, default=RESULTS)
    given = parser.parse_args()
    failed, done = [], ended(given) if given.missing else set()
    for name in (each for each in given.only or COMPARISONS if each not in done):
        print(f"{name} …", file=sys.stderr, flush=True)
        try:
            records = list(kept(run(name, given.device, given.small), given.out))
        except Exception:  # the other comparisons go on, and its earlier rows stay
            traceback.print_exc()
            failed.append(name)
            continue
        print("\n".join(markdown(records)), flush=True)
        whole = [{**each, "ended": True} for each in records]
        write(given.out, merged(read(given.out), whole))
    if failed:
        print(f"did not end: {', '.join(failed)}", file=sys.stderr)
    return len(failed)


def ended(given: argparse.Namespace) -> set[str]:
    """The comparisons that ended on this machine with this code."""
    known = made_here(given.out, where(given.device))
    own = [each for each in known if each["small"] == given.small and each["ended"]]
    return {each["comparison"] for each in own}


def kept(records: Iterable[Record], path: Path) -> Iterator[Record]:
    """The same rows, each of them written when it is there."""
    for each in records:
        write(path, merged(read(path), [{**each, "ended": False}]))
        yield each


def run(name: str, device: str, small: bool) -> Iterator[Record]:
    """The rows of a comparison, with where and when they were measured."""
    from comparing import Setup

    from attlas.progress import watched

    compare: Callable[[Setup], Iterable[Any]] = import_module(f"comparisons.{name}").compare
    facts = where(device)
    with watched(None, name):
        for measured in compare(Setup(device, small)):
            row = replace(measured, goal=None) if small else measured  # goals are of full sizes
            said = {"comparison": name, "small": small, **facts, **asdict(row)}
            yield said | {"ratio": row.ratio, "reached": row.reached}


def where(device: str) -> Record:
    import torch
    import transformers

    on_gpu = device.startswith("cuda")
    threads = f"{torch.get_num_threads()} of {os.cpu_count()} cores, {platform.machine()}"
    return {
        "device": "cuda" if on_gpu else "cpu",
        "machine": torch.cuda.get_device_name(device) if on_gpu else threads,
        "date": datetime.now(UTC).date().isoformat(),
        "versions": {"torch": torch.__version__, "transformers": transformers.__version__},
        "code": code(),
        "load": round(os.getloadavg()[0], 1),
    }


if __name__ == "__main__":
    sys.exit(main())
