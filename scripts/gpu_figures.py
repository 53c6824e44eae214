#!/usr/bin/env python3
"""Make the figures that need a GPU, in the minutes that there are.

scripts/gpu_figures.py chefer workers --out FOLDER --minutes 9 --processes 6 --base MINILM
scripts/gpu_figures.py better_attention --out FOLDER --minutes 9 --processes 15 --vectors WORDLLAMA

The jobs, in the order in which they are done, the short ones first: {jobs}.
Studies are done by so many processes side by side; a benchmark has the machine to itself. What is
running when the minutes are over is ended; finished parts of studies and rows of benchmarks stay.
FOLDER/figures.zip has them, and is written anew while the jobs run, so that whatever ends the
script loses some seconds. Called again, the script goes on from there, from what docs/studies/parts
keeps, and from build/gpu_figures, where it works. `--small` does little of everything, to see that
it works. CONTRIBUTING.md says what it needs and what comes afterwards.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path
from time import monotonic
from zipfile import ZIP_DEFLATED, ZipFile, is_zipfile

import slim_base
import study_parts

ROOT = Path(__file__).resolve().parents[1]
ARCHIVE = "figures.zip"
MODELS, SEEDS = "models/eraser_movies", 5
BASE, VECTORS = "minilm", "wordllama"  # as results name them
LAST = 25.0  # seconds that are left for packing
EVERY = 15.0  # seconds after which what was found is packed anew
COMPARED = ("attattr", "reading", "long")
FEW_TEXTS = "--quick --data eraser_movies --count 2"  # marked as quick: no page takes it over
FEW_MODELS = "--quick --data sst,sst_wiki --objectives masked:weight=1 --words 40"

Command = Sequence[str]
Steps = Iterator[Sequence[Command]]  # the commands of a step run side by side


@dataclass(frozen=True)
class Machine:
    """How the jobs are done: where, by how many processes, and until when."""

    device: str
    processes: int
    small: bool
    end: float

    def left(self) -> float:
        """The seconds that are left for work."""
        return max(0.0, self.end - LAST - monotonic())

    def size(self, full: str, small: str) -> list[str]:
        """Words of a command, for the full form or the small one."""
        return (small if self.small else full).split()


def chefer(machine: Machine) -> Steps:
    """Fine-tune the models that are missing, side by side; then the study of all of them."""
    from attlas.studies.chefer import METHODS_TRIED

    most = machine.size("", "--steps 2")
    tune = [*script("fine_tune.py"), BASE, "eraser_movies", "--out", MODELS, *on(machine), *most]
    yield [[*tune, "--seeds", "1", "--first-seed", str(seed)] for seed in untaught(machine)]
    few = [*machine.size("", FEW_TEXTS), "--methods", ",".join(METHODS_TRIED)]
    yield [[*study("chefer", machine), "--model", MODELS, *few]]


def untaught(machine: Machine) -> list[int]:
    """The seeds whose model is not here, unless all parts of it are."""
    from attlas.studies.chefer import METHODS_TRIED

    needed = []
    for seed in range(1 if machine.small else SEEDS):
        folder = Path(MODELS) / f"seed-{seed}"
        record = folder / "training.json"
        known = json.loads(record.read_text("utf-8"))["weights"] if record.is_file() else ""
        parts = list(Path("parts").glob(f"chefer-*-seed-{seed}-of-weights-{known}-*.json"))
        if not (folder / "config.json").is_file() and len(parts) < len(METHODS_TRIED):
            needed.append(seed)
    return needed


def better_attention(machine: Machine) -> Steps:
    """All parts by processes; what is there when they are ended is put together."""
    few = machine.size("", FEW_MODELS)
    yield [[*study("better_attention", machine), "--vectors", VECTORS, *few]]


def benchmarks(machine: Machine) -> Steps:
    """The comparisons whose rows on the page are older than the code."""
    names = [word for name in COMPARED for word in ("--only", name)]
    begun = [*benchmark("run", machine, "results.json"), "--missing"]
    yield [[*begun, *names, *machine.size("", "--small")]]


def costs(machine: Machine) -> Steps:
    """Seconds and megabytes of each method; it ends by itself when the time is up."""
    few = machine.size("", "--only raw_attention")
    seconds = ["--seconds", str(min(20 if machine.small else 400, int(machine.left())))]
    yield [[*benchmark("costs", machine, "costs.json"), "--missing", *seconds, *few]]


def offloading(machine: Machine) -> Steps:
    """A model that is larger than the device may hold."""
    begun = [*benchmark("offloading", machine, "offloading.json"), "--missing"]
    yield [[*begun, *machine.size("", "--layers 2")]]


def workers(machine: Machine) -> Steps:
    """Several workers against one: on the device, then on the cores beside it."""
    throughput = [sys.executable, str(ROOT / "benchmarks" / "ray_throughput.py"), "workers"]
    throughput += ["--json", "benchmarks/ray.json"]
    few = machine.size("--each 48", "--each 12 --part 8")
    yield [[*throughput, *on(machine), "--workers", "1", "2", *few]]
    few = machine.size("1 8 --each 24 --part 128", "1 2 --each 12 --part 8")
    yield [[*throughput, "--workers", *few]]


def million(machine: Machine) -> Steps:
    """A million texts, killed twice; what it found is in its log."""
    by = ["--workers", str(min(machine.processes, 8))]
    yield [[*plain_benchmark("million"), *machine.size("1000000", "3000"), *on(machine), *by]]


def estimates(machine: Machine) -> Steps:
    """What plans say beside what calls take."""
    yield [[*benchmark("estimates", machine, "estimates.json"), *machine.size("", "--small")]]


JOBS: dict[str, Callable[[Machine], Steps]] = {
    each.__name__: each
    for each in (
        *(estimates, workers, offloading, benchmarks),
        *(costs, million, chefer, better_attention),
    )
}


def script(name: str) -> list[str]:
    """The beginning of a command for a script of this folder."""
    return [sys.executable, str(ROOT / "scripts" / name)]


def plain_benchmark(name: str) -> list[str]:
    """The beginning of a command for a benchmark."""
    return [sys.executable, str(ROOT / "benchmarks" / f"{name}.py")]


def benchmark(name: str, machine: Machine, out: str) -> list[str]:
    """A benchmark that writes its rows to a file."""
    return [*plain_benchmark(name), *on(machine), "--out", f"benchmarks/{out}"]


def study(name: str, machine: Machine) -> list[str]:
    """A study in the folder of the work, by processes."""
    how = ["--out", ".", *on(machine), "--workers", str(machine.processes)]
    return [sys.executable, "-m", "attlas", "study", name, *how]


def on(machine: Machine) -> list[str]:
    """Where a command computes."""
    return ["--device", machine.device]


def run(job: str, machine: Machine, archive: Path) -> str:
    """Do a job as far as there is time; how it ended, in a word."""
    for commands in JOBS[job](machine):
        word = side_by_side(commands, Path("logs") / f"{job}.txt", machine, archive)
        if word != "finished":
            return word
    return "finished"


def side_by_side(commands: Sequence[Command], log: Path, machine: Machine, archive: Path) -> str:
    """Run commands until they end or the time does, packing meanwhile; none outlives this."""
    with log.open("ab") as stream, ExitStack() as held:
        how = {"stdout": stream, "stderr": subprocess.STDOUT, "start_new_session": True}
        started = []
        for command in commands:
            started.append(subprocess.Popen(command, **how))  # type: ignore[call-overload]
            held.callback(end, started[-1])
        while running := [each for each in started if each.poll() is None]:
            if not machine.left():
                return "ended"
            with suppress(subprocess.TimeoutExpired):
                running[0].wait(min(EVERY, machine.left()))
                continue
            pack(archive)
    return "failed" if any(each.returncode for each in started) else "finished"


def end(process: subprocess.Popen[bytes]) -> None:
    """End a process and those that it started."""
    for sign in (signal.SIGTERM, signal.SIGKILL):
        with suppress(ProcessLookupError):
            os.killpg(process.pid, sign)
        with suppress(subprocess.TimeoutExpired):
            process.wait(3)


def pack(archive: Path) -> None:
    """Write what was found so far into an archive, whole or not at all."""
    aside = archive.with_suffix(".unfinished")
    places = ("*.json", "*.md", "parts/*.json", "benchmarks/*.json", "logs/*.txt")
    with ZipFile(aside, "w", ZIP_DEFLATED) as file:
        for place in (*places, f"{MODELS}/*/training.json"):
            for each in sorted(Path().glob(place)):
                file.write(each)
    aside.replace(archive)


def go_on_from(archive: Path) -> None:
    """Bring what an earlier call found, and what the repository keeps; nothing is written over."""
    for each in ("benchmarks", "logs", "parts"):
        Path(each).mkdir(exist_ok=True)
    if archive.is_file():
        with ZipFile(archive) as file:
            for name in file.namelist():
                if not Path(name).exists():
                    file.extract(name)
    study_parts.lay(Path())


def bring(given: Path | None, name: str) -> None:
    """Have a model or vectors at hand under the name by which results know them."""
    place = Path(name)
    if given is None or place.exists():
        return
    if name == BASE and is_zipfile(given):
        slim_base.unpack(given, place)
    else:
        place.symlink_to(given)


def environment() -> dict[str, str]:
    """What the commands find set; they run in the folder of the work."""
    known = {name: os.environ[name] for name in ("ATTLAS_DATA",) if name in os.environ}
    return {
        **{name: str(Path(value).resolve()) for name, value in known.items()},
        "PYTHONPATH": str(ROOT / "src"),
        "HF_HUB_OFFLINE": "1",
        "PYTHONUNBUFFERED": "1",
        "TOKENIZERS_PARALLELISM": "false",
        "TORCH_ALLOW_TF32_CUBLAS_OVERRIDE": "0",  # some images set it, and products are rounded
    }


def main(arguments: list[str] | None = None) -> int:
    """Read the arguments, and do the jobs; how many did not finish."""
    parser = argparse.ArgumentParser(
        description=(__doc__ or "").format(jobs=", ".join(JOBS)),
        formatter_class=argparse.RawTextHelpFormatter,
    )
    parser.add_argument("jobs", nargs="+", choices=JOBS, metavar="JOB")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--minutes", type=float, default=9.0)
    parser.add_argument("--processes", type=int, default=15)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--base", type=Path, help="MiniLM: a folder, or what slim_base.py made")
    parser.add_argument("--vectors", type=Path, help="word vectors: a folder or a wheel")
    parser.add_argument("--small", action="store_true")
    given = parser.parse_args(arguments)
    until = monotonic() + 60 * given.minutes
    machine = Machine(given.device, given.processes, given.small, until)
    os.environ.update(environment())
    given.out.mkdir(parents=True, exist_ok=True)
    archive = (given.out / ARCHIVE).resolve()
    base, vectors = (each and each.resolve() for each in (given.base, given.vectors))
    work = ROOT / "build" / ("gpu_figures_small" if given.small else "gpu_figures")
    work.mkdir(parents=True, exist_ok=True)
    os.chdir(work)
    go_on_from(archive)
    bring(base, BASE)
    bring(vectors, VECTORS)
    signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))
    try:
        return do(sorted(given.jobs, key=list(JOBS).index), machine, archive)
    finally:
        pack(archive)


def do(jobs: Sequence[str], machine: Machine, archive: Path) -> int:
    """One job after the other; what was found is packed after each."""
    unfinished = 0
    for job in jobs:
        begun = monotonic()
        word = run(job, machine, archive) if machine.left() else "not begun"
        unfinished += word != "finished"
        if job == "better_attention" and word == "ended" and not machine.small:
            subprocess.run([*script("better_attention_so_far.py"), "."], check=False)
        pack(archive)
        print(f"{job}: {word}, {monotonic() - begun:.0f} s", flush=True)
    return unfinished


if __name__ == "__main__":
    sys.exit(main())
