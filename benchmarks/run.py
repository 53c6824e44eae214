"""Run every comparison: ours, a peer, the ratio, and how far the results are apart.

    python benchmarks/run.py [--device cuda] [--only NAME]... [--small] [--out FILE]

The comparisons are the files of `benchmarks/comparisons`. Ours is the call that a user makes;
beside it stands the function inside, where that is instructive. The script prints a table and
writes the rows to FILE (`benchmarks/results.json` if not given) as each comparison ends; they take
the place of earlier rows of the same comparison, device and size, and all others stay. `--small`
takes little time and shows that everything works; its ratios say little. `python
benchmarks/tables.py FILE...` puts the rows of other machines into `results.json`, and all of them
into docs/performance.md.
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

from tables import RESULTS, Record, markdown, merged, read, write

COMPARISONS = tuple(
    sorted(each.name for each in iter_modules([str(Path(__file__).parent / "comparisons")]))
)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--only", action="append", choices=COMPARISONS, metavar="NAME")
    parser.add_argument("--small", action="store_true")
    parser.add_argument("--out", type=Path, default=RESULTS)
    given = parser.parse_args()
    failed = []
    for name in given.only or COMPARISONS:
        print(f"{name} …", file=sys.stderr, flush=True)
        try:
            records = list(run(name, given.device, given.small))
        except Exception:  # the other comparisons go on, and its earlier rows stay
            traceback.print_exc()
            failed.append(name)
            continue
        print("\n".join(markdown(records)), flush=True)
        write(given.out, merged(read(given.out), records))
    if failed:
        print(f"did not end: {', '.join(failed)}", file=sys.stderr)
    return len(failed)


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
        "load": round(os.getloadavg()[0], 1),
    }


if __name__ == "__main__":
    sys.exit(main())
