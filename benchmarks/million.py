"""Many short texts through `explain_to` into a Parquet file, killed twice and asked again.

    python benchmarks/million.py [COUNT] [--device cuda] [--model NAME] [--method NAME]
                                 [--workers N] [--folder F]

A child process explains COUNT generated texts (a million if not said). It is killed after a third
and after two thirds of them, and started again. What is printed, as JSON: the rows of the file, how
many texts occur twice or never, the resident memory of each process after its first 1 % of texts
and at its end, and the texts per second. With workers, the memory of the processes that it starts
is told too, from the middle of its work on, since they take a while to start. It fails unless every
text has one row, and unless memory is as flat as `GROWTH` says.
"""

import argparse
import csv
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from random import Random
from typing import Any

GROWTH = 1.1  # how much more memory a process may have at its end than after its first 1 %
DIFFERENT = 20_000  # texts without their numbers
MEGABYTE = 1024  # in the unit of VmRSS


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("count", type=int, nargs="?", default=1_000_000)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--model", default="sentiment")
    parser.add_argument("--method", default="raw_attention")
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--child", type=Path, nargs=2, metavar=("DATA", "OUT"))
    given = parser.parse_args()
    if given.child:
        return explain(given, *given.child)
    with tempfile.TemporaryDirectory(dir=given.folder) as folder:
        found = campaign(given, Path(folder))
    print(json.dumps(found, indent=1))
    return 0 if found["rows"] == given.count and not found["failed"] else 1


def explain(given: argparse.Namespace, data: Path, out: Path) -> int:
    """The child: explain everything that is left, and tell after each part how far it is."""
    import attlas

    def watch(step: Any) -> None:
        if step.left is not None:  # what was done by an earlier process is told without
            print(step.done, *resident(), flush=True)

    subject = attlas.load(given.model, device=given.device)
    engine = attlas.Engine("local", workers=given.workers)
    attlas.explain_to(subject, data, out, given.method, engine=engine, watch=watch)
    return 0


def resident() -> tuple[int, int]:
    """The memory of this process, and of those that it has started."""
    own = Path("/proc/self")
    started = [each.read_text().split() for each in own.glob("task/*/children")]
    others = [Path("/proc") / number for some in started for number in some]
    return _size(own), sum(map(_size, others))


def _size(process: Path) -> int:
    try:
        found = re.search(r"VmRSS:\s+(\d+)", (process / "status").read_text())
    except OSError:  # it has just ended
        return 0
    return int(found[1]) if found else 0


def campaign(given: argparse.Namespace, folder: Path) -> dict[str, Any]:
    data, out = folder / "texts.csv", folder / "scores.parquet"
    write_texts(data, given.count)
    command = [sys.executable, __file__, "--child", str(data), str(out)]
    command += ["--device", given.device, "--model", given.model, "--method", given.method]
    command += ["--workers", str(given.workers)]
    ends = [given.count // 3, 2 * given.count // 3, given.count + 1]
    runs = [run(command, end, given.count) for end in ends]
    seconds, new = (sum(each[name] for each in runs) for name in ("seconds", "new"))
    pairs = (("end", "at_1_%"), ("of_others_end", "of_others_at_half"))
    flat = all(
        each[f"megabytes_{late}"] <= GROWTH * each[f"megabytes_{early}"]
        for each in runs
        for late, early in pairs
    )
    found = check(out, given.count)
    wrong = bool(found["twice"] or found["missing"] or found["problems"])
    about = {
        name: getattr(given, name) for name in ("count", "device", "model", "method", "workers")
    }
    return {
        **about,
        **found,
        "runs": runs,
        "texts_a_second": round(new / max(seconds, 1e-9), 1),
        "seconds_with_starts": round(sum(each["seconds_with_start"] for each in runs), 1),
        "memory_is_flat": flat,
        "failed": wrong or not flat,
    }


def run(command: list[str], end: int, count: int) -> dict[str, Any]:
    """One process, killed when this many rows are done: how long it worked, and its memory."""
    told: list[tuple[float, int, int, int]] = []
    started = time.monotonic()
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None
        for line in child.stdout:
            done, own, others = map(int, line.split())
            told.append((time.monotonic(), done, own, others))
            if done >= end:
                child.send_signal(signal.SIGKILL)
                break
    if child.returncode not in (0, -signal.SIGKILL):
        raise SystemExit(f"the process ended with {child.returncode}")
    begun, first, *_ = told[0]
    after = next(each for each in told if each[1] >= min(first + count / 100, told[-1][1]))
    half = next(each for each in told if each[1] >= (first + told[-1][1]) / 2)
    found = {
        "killed": child.returncode != 0,
        "new": told[-1][1] - first,
        "seconds": round(told[-1][0] - begun, 2),
        "seconds_with_start": round(time.monotonic() - started, 2),
        "megabytes_at_1_%": round(after[2] / MEGABYTE),
        "megabytes_end": round(told[-1][2] / MEGABYTE),
        "megabytes_of_others_at_half": round(half[3] / MEGABYTE),
        "megabytes_of_others_end": round(told[-1][3] / MEGABYTE),
    }
    print(json.dumps(found), file=sys.stderr, flush=True)  # the whole may be stopped
    return found


def check(out: Path, count: int) -> dict[str, Any]:
    """Whether each text has its row; a text begins with its number."""
    from pyarrow import parquet

    table = parquet.read_table(out, columns=["text", "problem"])
    numbers = [int(text.split(maxsplit=1)[0]) for text in table["text"].to_pylist()]
    distinct = set(numbers)
    return {
        "rows": len(numbers),
        "twice": len(numbers) - len(distinct),
        "missing": len(set(range(count)) - distinct),
        "problems": table.num_rows - table["problem"].null_count,
    }


def write_texts(path: Path, count: int) -> None:
    """Short texts of neutral words, each with its number in front, which makes it another."""
    from attlas.data.generated.shortcuts import write_neutral

    random = Random(0)
    written = [" ".join(write_neutral(random)) for _ in range(min(count, DIFFERENT))]
    with path.open("w", newline="") as stream:
        writer = csv.writer(stream)
        writer.writerow(["text"])
        writer.writerows([f"{each} {written[each % DIFFERENT]}"] for each in range(count))


if __name__ == "__main__":
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    sys.exit(main())
