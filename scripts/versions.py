"""The oldest and the newest torch and transformers: do the contracts hold, and what opens?

    python scripts/versions.py [--pair TORCH TRANSFORMERS]... [--tests FILE...] [--only TYPE...]
                               [--minutes 60] [--folder FOLDER] [--write]

By default the pairs are the oldest versions that pyproject.toml allows, those of constraints.txt,
and the newest that pip finds. Each gets a virtual environment of its own in FOLDER, in which the
contracts of the parts and the survey of model types (scripts/compatibility.py) run. What cannot be
made or does not end in time is said in its row. `--write` puts the table into
docs/compatibility.md.

A build of torch for GPUs is installed without the packages of its GPU, which take gigabytes; one
that cannot be imported without them gets them.
"""

import argparse
import json
import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "compatibility.md"
CONTRACTS = [f"tests/{room}/test_contract.py" for room in ("methods", "measures", "trials")]
# Packages that go with torch and transformers: each pair chooses its own.
THEIRS = (
    "torch",
    "setuptools",
    "transformers",
    "tokenizers",
    "huggingface_hub",
    "safetensors",
    "accelerate",
    "peft",
)
GPU_PACKAGES = ("nvidia-", "cuda-", "triton")
HEAD = "| torch | transformers | contracts | types opened, of those with attention | on |"
TOLD = (
    "By `python scripts/versions.py`: the contracts of the parts, and the survey of types;\n"
    "`--tests` and `--only` ask for fewer of them, and the row says so."
)
BEGIN, END = "<!-- versions -->", "<!-- end of versions -->"


@dataclass
class Row:
    """What was found with one pair of versions."""

    torch: str
    transformers: str
    contracts: str = "not run"
    opened: str = "not run"
    notes: list[str] = field(default_factory=list)

    def line(self) -> str:
        day = datetime.now(UTC).date()
        return f"| {self.torch} | {self.transformers} | {self.contracts} | {self.opened} | {day} |"


class NotMade(Exception):
    """Why an environment could not be made."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--pair", nargs=2, action="append", metavar=("TORCH", "TRANSFORMERS"))
    parser.add_argument("--tests", nargs="+", default=CONTRACTS, metavar="FILE")
    parser.add_argument("--only", nargs="+", default=(), metavar="TYPE", help="only these types")
    parser.add_argument("--minutes", type=float, default=60.0, help="of each run, at most")
    parser.add_argument("--folder", type=Path, default=ROOT / "build" / "versions")
    parser.add_argument("--write", action="store_true", help="put the table into the page")
    given = parser.parse_args()
    rows = []
    for torch, transformers in given.pair or pairs():
        rows.append(tried(Row(torch, transformers), given))
        print(rows[-1].line(), *rows[-1].notes, sep="\n", flush=True)
    if given.write:
        PAGE.write_text(with_table(PAGE.read_text("utf-8"), rows), "utf-8")


def pairs() -> list[tuple[str, str]]:
    """The oldest versions, those that the tests run on, and the newest."""
    asked = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["dependencies"]
    oldest, pinned = (
        {
            name: version
            for line in lines
            for name, version in re.findall(r"^([\w-]+)[>=]=(.+)$", line)
        }
        for lines in (asked, (ROOT / "constraints.txt").read_text("utf-8").splitlines())
    )
    newest = {name: newest_of(name) for name in ("torch", "transformers")}
    found = [(each["torch"], each["transformers"]) for each in (oldest, pinned, newest)]
    return list(dict.fromkeys(found))


def newest_of(package: str) -> str:
    """The newest release that pip finds."""
    said = ran([sys.executable, "-m", "pip", "index", "versions", package], 2)
    return re.search(r"\(([^)]+)\)", said.stdout)[1]


def tried(row: Row, given: argparse.Namespace) -> Row:
    try:
        python = made(row, given)
        row.contracts = contracts(python, row, given)
        row.opened = survey(python, row, given)
    except NotMade as problem:
        row.notes.append(str(problem))
        row.contracts = row.opened = "could not be made"
    except subprocess.TimeoutExpired:
        row.notes.append("out of time")
    return row


def made(row: Row, given: argparse.Namespace) -> Path:
    """The Python of an environment with these versions; one that is there is taken as it is."""
    folder = given.folder / f"torch-{row.torch}-transformers-{row.transformers}"
    python, done = folder / "bin" / "python", folder / ".made"
    if done.exists():
        return python
    installed([sys.executable, "-m", "venv", str(folder)], given.minutes)
    others = given.folder / "others.txt"
    lines = (ROOT / "constraints.txt").read_text("utf-8").splitlines()
    others.write_text("\n".join(each for each in lines if each.split("==")[0] not in THEIRS))
    pip = [str(python), "-m", "pip", "install", "--quiet", "--constraint", str(others)]
    torch, free = f"torch=={row.torch}", pip[:5]  # torch has limits of its own for what it needs
    installed([*free, "--no-deps", torch], given.minutes)
    installed([*free, *light_needs(python)], given.minutes)
    if ran([str(python), "-c", "import torch"], given.minutes).returncode:
        installed([*free, torch], given.minutes)
    # `--no-deps` for what needs torch, or pip would bring the packages of its GPU after all.
    needs = [*project_needs(), f"transformers=={row.transformers}"]
    installed([*pip, *(each for each in needs if not needs_torch(each))], given.minutes)
    installed([*pip, "--no-deps", *(each for each in needs if needs_torch(each))], given.minutes)
    installed([*pip, "--no-deps", "--editable", str(ROOT)], given.minutes)
    done.touch()
    return python


def project_needs() -> list[str]:
    """What the package and its tests need, without torch and transformers."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    extras = project["optional-dependencies"]
    asked = [*project["dependencies"], *extras["test"], *extras["serve"]]
    return [each for each in asked if not each.startswith(("torch>", "transformers>", "attlas["))]


def needs_torch(requirement: str) -> bool:
    return requirement.startswith(("accelerate", "peft", "captum"))


def light_needs(python: Path) -> list[str]:
    """What torch needs beside the packages of a GPU."""
    code = "from importlib.metadata import requires; print('\\n'.join(requires('torch') or ()))"
    said = ran([str(python), "-c", code], 2).stdout.splitlines()
    plain = [each.split(";")[0].strip() for each in said if "extra ==" not in each]
    return [each for each in plain if not each.startswith(GPU_PACKAGES)]


def contracts(python: Path, row: Row, given: argparse.Namespace) -> str:
    """Run the contracts; how many hold."""
    asked = [str(python), "-m", "pytest", "-q", "-m", "not slow", "--tb=line", *given.tests]
    said = ran(asked, given.minutes)
    counts = dict(
        (word, int(number))
        for number, word in re.findall(r"(\d+) (passed|failed|error)", said.stdout)
    )
    if not counts:
        row.notes.append(f"the contracts did not start: {last_line(said.stdout + said.stderr)}")
        return "did not start"
    failed = re.findall(r"^(?:FAILED|ERROR) (\S+)", said.stdout, re.M)
    row.notes += [f"{each} fails" for each in failed]
    rooms = ", ".join(Path(each).parent.name for each in given.tests)
    return f"{counts.get('passed', 0)} of {sum(counts.values())} hold ({rooms})"


def survey(python: Path, row: Row, given: argparse.Namespace) -> str:
    """Run the survey of model types; how many of those with attention open."""
    only = ["--only", *given.only] if given.only else []
    said = ran([str(python), "scripts/compatibility.py", "--json", *only], given.minutes)
    try:
        rows = json.loads(said.stdout)["rows"]
    except (ValueError, LookupError):
        row.notes.append(f"the survey did not end: {last_line(said.stderr)}")
        return "did not end"
    with_attention = [each for each in rows if each["verdict"] != "no softmax attention"]
    opened = [each for each in with_attention if each["verdict"] in ("opened", "second road")]
    wrong = [each["kind"] for each in rows if each["verdict"] == "wrong"]
    row.notes += [f"{kind} is opened wrongly" for kind in wrong]
    asked = f"; {len(given.only)} types were asked" if given.only else ""
    return f"{len(opened)} of {len(with_attention)}, {len(wrong)} wrongly{asked}"


def ran(command: Sequence[str], minutes: float) -> subprocess.CompletedProcess[str]:
    quiet = {"OMP_NUM_THREADS": "1", "TOKENIZERS_PARALLELISM": "false", "HF_HUB_OFFLINE": "1"}
    surroundings = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"} | quiet
    return subprocess.run(
        command, cwd=ROOT, env=surroundings, capture_output=True, text=True, timeout=60 * minutes
    )


def installed(command: Sequence[str], minutes: float) -> None:
    said = ran(command, minutes)
    if said.returncode:
        raise NotMade(last_line(said.stderr or said.stdout))


def last_line(text: str) -> str:
    lines = [each.strip() for each in text.splitlines() if each.strip()]
    return re.sub(r" \S*https?://\S+", "", lines[-1])[:200] if lines else "no message"


def with_table(text: str, rows: Sequence[Row]) -> str:
    """The page with these rows in its table; those of other pairs stay as they are."""
    before = re.search(f"{BEGIN}(.*?){END}", text, re.S)[1].splitlines()
    pairs = [f"| {row.torch} | {row.transformers} |" for row in rows]
    names = [f"- torch {row.torch}, transformers {row.transformers}: " for row in rows]
    known = [each for each in before if re.match(r"\| \d", each)]
    known = [each for each in known if not each.startswith(tuple(pairs))]
    notes = [each for each in before if each.startswith("- ") and not each.startswith(tuple(names))]
    lines = sorted([*known, *(row.line() for row in rows)])
    notes += [f"{name}{note}" for name, row in zip(names, rows, strict=True) for note in row.notes]
    made = [BEGIN, "", HEAD, "|---|---|---|---|---|", *lines, "", TOLD, "", *sorted(notes), "", END]
    return re.sub(f"{BEGIN}.*?{END}", lambda _: "\n".join(made), text, flags=re.S)


if __name__ == "__main__":
    main()
