"""Records the first three minutes of a new user: `python scripts/first_minutes.py`.

A clean clone of the last commit goes to a temporary folder, and `make demo` runs there as in a
terminal, or, with --pipe, as in a script. Printed at the end: how long installing took, how long
after that the first result came, the longest silence and the words before it, how many lines stayed
on the screen, and how often the model is right on the demo's data. `--venv FOLDER` uses what is
installed there already. `--verbs` measures only the silence of long work that is called from
Python, in a terminal and in a pipe, with what this Python has installed.
"""

import argparse
import json
import os
import pty
import re
import subprocess
import sys
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from time import monotonic

HERE = Path(__file__).parents[1]
PAGES = ("demo/explanation.html", "demo/audit/report.html")
RESULT = re.compile(r"^(NEGATIVE|POSITIVE) ", re.MULTILINE)  # the first line of an explanation
MOVES = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")
VERBS = {  # long work, as a new user would call it
    "audit": "attlas.audit(attlas.load(), 'reviews', quick=True)",
    "head_importance": "attlas.head_importance(attlas.load(), 'reviews')",
    "triggers": "attlas.triggers(attlas.load(), 'reviews')",
    "score": "attlas.scoring.score(count=10)",
}
LAST = "the call is over"  # written by the caller; Python takes its time to end after that
ERASED = re.compile(r"[^\n]*\r\x1b\[K|\x1b\[[0-9;]*m")  # a line that is rewritten, and colours


def run(command: list[str], folder: Path, pipe: bool) -> Iterator[tuple[float, str]]:
    """Each piece of what a command writes, with the seconds since it began."""
    reader, writer = os.pipe() if pipe else pty.openpty()
    known = {**os.environ, "COLUMNS": "80", "ATTLAS_AUDITS": str(folder / "records")}
    begun = monotonic()
    with subprocess.Popen(command, cwd=folder, stdout=writer, stderr=writer, env=known) as process:
        os.close(writer)
        while True:
            try:
                piece = os.read(reader, 65536)
            except OSError:  # how a terminal says that nobody writes any more
                break
            if not piece:
                break
            yield monotonic() - begun, piece.decode(errors="replace")
    yield monotonic() - begun, ""
    if process.returncode:
        raise SystemExit(f"{' '.join(command)} ended with {process.returncode}")


def record(pieces: list[tuple[float, str]], installed: float) -> dict[str, str]:
    """What a user would say of it."""
    text, first = "", None
    for second, piece in pieces:
        text += piece
        if first is None and RESULT.search(ERASED.sub("", text.replace("\r\n", "\n"))):
            first = second
    after = [(installed, ""), *(each for each in pieces if each[0] > installed)]
    seconds = [second for second, _ in after]
    silence, before = longest_silence(after)
    shown = ERASED.sub("", text.replace("\r\n", "\n"))
    return {
        "seconds to install": f"{installed:.0f}",
        "seconds to the first result after that": f"{(first or seconds[-1]) - installed:.0f}",
        "seconds in all after installing": f"{seconds[-1] - installed:.0f}",
        "longest silence after installing, seconds": f"{silence:.1f}",
        "what was written before it": before,
        "lines printed": str(len(shown.splitlines())),
    }


def longest_silence(pieces: list[tuple[float, str]]) -> tuple[float, str]:
    """How many seconds nothing was written, and what had been written before."""
    silence, before = max((later[0] - now[0], now[1]) for now, later in pairwise(pieces))
    return silence, words_of(before)[-60:] or "nothing"


def words_of(piece: str) -> str:
    """A piece of what was written, on one line and without what moves the cursor."""
    return " ".join(MOVES.sub(" ", piece).split())


def measure_verbs() -> None:
    """Print how long each verb takes and is silent, called from Python."""
    print(
        f"{'verb':<16} {'where':<9} {'seconds':>7} {'longest silence':>16}  what was written before"
    )
    for name, call in VERBS.items():
        script = f"import attlas; found = {call}; print({LAST!r}, flush=True)"
        for where in ("terminal", "pipe"):
            with TemporaryDirectory() as place:
                written = list(run([sys.executable, "-c", script], Path(place), where == "pipe"))
            end = next(at for at, (_, piece) in enumerate(written) if LAST in piece)
            heard = [(0.0, ""), *written[: end + 1]]
            silence, before = longest_silence(heard)
            print(f"{name:<16} {where:<9} {heard[-1][0]:>7.0f} {silence:>14.1f} s  {before}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--pipe", action="store_true", help="not in a terminal")
    parser.add_argument("--venv", type=Path, help="a folder in which Attlas is installed already")
    parser.add_argument("--verbs", action="store_true", help="long work that Python calls")
    given = parser.parse_args()
    if given.verbs:
        measure_verbs()
        return
    with TemporaryDirectory() as place:
        clone = Path(place) / "attlas"
        subprocess.run(["git", "clone", "--quiet", str(HERE), str(clone)], check=True)
        make, installing = ["make", f"PYTHON={sys.executable}"], [(0.0, "")]
        if given.venv is None:
            installing = list(run([*make, ".venv/.installed"], clone, given.pipe))
        else:
            (clone / ".venv").symlink_to(given.venv.resolve())
            make += ["--old-file=.venv/.installed"]  # which must not be made again
            os.environ["PYTHONPATH"] = str(clone / "src")
        demo = list(run([*make, "demo"], clone, given.pipe))
        installed = installing[-1][0]
        after = [(installed + second, piece) for second, piece in demo]
        figures = record([*installing, *after], installed)
        missing = [page for page in PAGES if not (clone / page).is_file()]
        report = json.loads((clone / "demo" / "audit" / "report.json").read_text("utf-8"))
    print("".join(piece for _, piece in [*installing, *demo]))
    figures["accuracy on the demo's data"] = f"{report['data']['accuracy']['value']:.3f}"
    figures["pages that are missing"] = ", ".join(missing) or "none"
    for name, figure in figures.items():
        print(f"{name:<44} {figure}")


if __name__ == "__main__":
    main()
