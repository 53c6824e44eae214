#!/usr/bin/env python3
"""Write the pages of studies from the JSON of their full runs.

scripts/studies_page.py             brings docs/studies up to date with the results kept there
scripts/studies_page.py FOLDER …    takes over the results in these folders first
scripts/studies_page.py FOLDER --beside WORD    takes them over beside the main ones; a page shows
                                    them where it has the mark "result WORD"
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from attlas.results import StudyResult
from attlas.studies import STUDIES

ROOT = Path(__file__).resolve().parents[1]
PAGES = ROOT / "docs" / "studies"
KEPT = PAGES / "results"  # the JSON of each study, without what only its page draws
PICTURES = PAGES / "images"
START, END = "<!-- {}: scripts/studies_page.py -->", "<!-- end of {} -->"
NOT_RUN = "The full form has not been run."
WORDS = {"reproduced": "reproduced", "partly": "partly", "not reproduced": "**not**"}


def take_over(folder: Path, beside: str = "") -> list[str]:
    """Keep the results of full runs in a folder, or keep them beside; a quick one is refused."""
    taken = []
    for path in sorted(folder.glob("*.json")):
        record = json.loads(path.read_text("utf-8"))
        if record.get("name") not in STUDIES.names():
            continue
        if record["quick"]:
            sys.exit(f"{path} is of a quick run: pages show full runs only")
        slim = {**record, "plots": [], "details": {}}
        KEPT.mkdir(exist_ok=True)
        text = json.dumps(slim, ensure_ascii=False, indent=1)
        place(record["name"], beside).write_text(f"{text}\n", encoding="utf-8")
        if not beside:
            draw(StudyResult.from_dict(record))
        taken.append(record["name"])
    return taken


def place(name: str, beside: str = "") -> Path:
    """Where the result of a study is kept: the main one, or one beside it."""
    return KEPT / (f"{name}.{beside}.json" if beside else f"{name}.json")


def draw(result: StudyResult) -> None:
    """Draw the first plot of a study, if its page shows a picture of it."""
    picture = PICTURES / f"{result.name}.png"
    page = (PAGES / f"{result.name}.md").read_text("utf-8")
    if f"({picture.relative_to(PAGES).as_posix()})" in page:
        picture.parent.mkdir(exist_ok=True)
        result.plot(width="double").figure.savefig(picture, dpi=200, bbox_inches="tight")


def kept(name: str, beside: str = "") -> StudyResult | None:
    """The result of a study that is kept, if there is one."""
    path = place(name, beside)
    return StudyResult.from_dict(json.loads(path.read_text("utf-8"))) if path.is_file() else None


def pages() -> dict[Path, str]:
    """Every page of a study, and the first one, as they should be."""
    found = {PAGES / "README.md": _first_page()}
    for name in STUDIES.built_in:
        path = PAGES / f"{name}.md"
        result = kept(name)
        text = path.read_text("utf-8")
        text = replaced(text, "options", _options(name))
        shown = NOT_RUN if result is None else result.markdown()
        found[path] = with_beside(replaced(text, "result", shown), name)
    return found


def with_beside(text: str, name: str) -> str:
    """The page of a study with the results that are kept beside the main one."""
    for path in sorted(KEPT.glob(f"{name}.*.json")):
        word = path.name.split(".")[1]
        result = kept(name, word)
        assert result is not None
        text = replaced(text, f"result {word}", result.markdown())
    return text


def _options(name: str) -> str:
    from attlas.catalogue import catalogue

    facts = catalogue("study")[name]
    rows = ["| option | default | quick | what it is |", "|---|---|---|---|"]
    for option, default in facts.options.items():
        quick = facts.record["quick"].get(option, default)
        shown = [f"`{value!r}`" for value in (default, quick)]
        flag = f"--{option.replace('_', '-')}"
        rows.append(f"| `{flag}` | {' | '.join(shown)} | {facts.described[option]} |")
    return "\n".join(rows)


def _first_page() -> str:
    text = (PAGES / "README.md").read_text("utf-8")
    studies = ["| study | asks | paper |", "|---|---|---|"]
    claims = ["| study | published claim | verdict | ours | published |", "|---|---|---|---|---|"]
    for name in STUDIES.built_in:
        chosen, result = STUDIES[name], kept(name)
        link = f"[{name}]({name}.md)"
        studies.append(f"| {link} | {chosen.question} | {chosen.paper} |")
        if result is None:
            claims.append(f"| {link} | all | not run | – | – |")
            continue
        for each in result.claims:
            ours = _number(None if each.ours is None else each.ours.value)
            verdict = WORDS.get(each.verdict, each.verdict)
            claims.append(
                f"| {link} | {each.said} | {verdict} | {ours} | {_number(each.published)} |"
            )
    text = replaced(text, "studies", "\n".join(studies))
    return replaced(text, "claims", "\n".join(claims))


def _number(value: float | int | None) -> str:
    return "–" if value is None else f"{value:.3g}".replace("-", "−")


def replaced(text: str, what: str, new: str) -> str:
    """The text with what stands between two marks written anew."""
    start, end = START.format(what), END.format(what)
    if start not in text or end not in text:
        sys.exit(f"a page has no {start} … {end}")
    before, _, rest = text.partition(start)
    return f"{before}{start}\n{new}\n{end}{rest.partition(end)[2]}"


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("folders", nargs="*", type=Path, help="with the results of full runs")
    parser.add_argument("--beside", metavar="WORD", default="", help="keep them beside, as this")
    given = parser.parse_args(arguments)
    for folder in given.folders:
        print(f"{folder}: {', '.join(take_over(folder, given.beside)) or 'no results'}")
    for path, text in pages().items():
        if path.read_text("utf-8") != text:
            path.write_text(text, encoding="utf-8")
            print(path.relative_to(ROOT))


if __name__ == "__main__":
    main()
