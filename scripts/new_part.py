#!/usr/bin/env python3
"""Write the three files of a new method, measure, trial, objective or study, and their lists.

scripts/new_part.py method my_method   writes src/attlas/methods/my_method.py, its test and its page
scripts/new_part.py index              brings the lists of their pages up to date
"""

import argparse
import keyword
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
ROOMS = {
    "method": "methods",
    "measure": "measures",
    "trial": "trials",
    "objective": "objectives",
    "study": "studies",
}
HEADINGS = {
    "method": ("What it is", "Formula", "When to use another", "What it does not mean", "Paper"),
    "measure": ("What it is", "Formula", "What it does not mean", "Paper"),
    "trial": ("What it asks", "Formula", "Figures", "What it does not show", "Paper"),
    "objective": ("What it is", "Formula", "What it does not show", "Paper"),
    "study": ("What it is", "How to run it", "Paper"),
}
START, END = "<!-- parts: scripts/new_part.py index -->", "<!-- end of parts -->"

METHOD = '''"""TODO: what the method does, in one line."""

from attlas.methods.support.method import Scored, method
from attlas.models.asking.question import Question


@method(
    family="W",  # TODO: W weights, V with values or gradients, P propagation, reference
    signed=False,  # TODO: can a score be negative, and speak against the target?
    of=None,  # TODO: "logit" or "probability", if the scores depend on the target
    paper="TODO: authors and year, arXiv:…; empty if nobody has published it",
    reading="TODO: what a score says, in one sentence.",
    needs=("attention",),  # TODO: keys of NEEDS in methods/support/method.py
)
def {name}(question: Question) -> Scored:
    """TODO: score each token by …."""
    raise NotImplementedError
'''
MEASURE = '''"""TODO: what the measure asks, in one line."""

from attlas.measures.support.measure import Case, measure
from attlas.measures.support.sizes import mean, tops
from attlas.removing.erasures import Outcomes


@measure(
    better="higher",  # TODO: or lower
    kind="faithfulness",  # TODO: or robustness, plausibility
    needs=("removal",),  # TODO: keys of NEEDS in measures/support/measure.py
    by_rank=True,  # TODO: does only the order of the scores count?
    reading="TODO: what the figure says, in one sentence.",
    paper="TODO: authors and year, arXiv:…",
    ways=tops,  # TODO: which sets of tokens are removed
)
def {name}(case: Case, whole: Outcomes, outcomes: Outcomes) -> float:
    """TODO: the formula, in words."""
    raise NotImplementedError
'''
TRIAL = '''"""TODO: what the trial does to the attention, in one line."""

from collections.abc import Sequence

from attlas.models.asking.question import Question
from attlas.trials.support.scope import Scope
from attlas.trials.support.trial import TrialOutcome, trial


@trial(
    cost="cheap",  # TODO: or expensive
    paper="TODO",
    reading="TODO: what does the trial ask?",
    does_not_show="TODO: what must not be read into it.",
    needs=("attention",),  # TODO: keys of NEEDS in trials/support/trial.py
)
def {name}(
    questions: Sequence[Question],
    scope: Scope = Scope(),  # noqa: B008
    *,
    seed: int = 0,
) -> TrialOutcome:
    """TODO: what is changed, and what is measured."""
    raise NotImplementedError
'''
OBJECTIVE = '''"""TODO: what the model is trained for, in one line."""

from attlas.objectives.support.objective import objective
from attlas.objectives.support.step import TrainingStep
from attlas.shapes import BatchScores


@objective(
    paper="TODO: authors and year, arXiv:…; empty if nobody has published it",
    reading="TODO: what a low value says.",
    does_not_show="TODO: what must not be concluded from it.",
    needs=("attention",),  # TODO: keys of NEEDS in objectives/support/objective.py
)
def {name}(step: TrainingStep) -> BatchScores:
    """TODO: the value of each text, to be low."""
    raise NotImplementedError
'''
STUDY = '''"""TODO: the experiment, and its paper."""

from attlas.studies.support.findings import Findings
from attlas.studies.support.run import Run
from attlas.studies.support.study import study


@study(
    about="TODO: in one line",
    question="TODO: what does the experiment ask?",
    paper="TODO: authors and year, arXiv:…",
    quick={{"count": 4}},  # TODO: the options of the quick form, which takes seconds
    takes=(5, 0),  # TODO: seconds of the quick form on two cores, of the full form on a GPU
)
def {name}(run: Run, *, count: int = 100) -> Findings:
    """TODO: what is done.

    Args:
        count: TODO: how many texts.
    """
    raise NotImplementedError
'''
MARKED = """<!-- options: scripts/studies_page.py -->
<!-- end of options -->

## Result

<!-- result: scripts/studies_page.py -->
<!-- end of result -->"""
SOURCES = {
    "method": METHOD,
    "measure": MEASURE,
    "trial": TRIAL,
    "objective": OBJECTIVE,
    "study": STUDY,
}
TEST = '''"""TODO: what `{name}` is compared with."""


def test_{name}_is_what_its_definition_says():
    # TODO: an oracle from the definition, not from the code: a case worked by hand, a plain loop.
    raise NotImplementedError
'''


def write_part(kind: str, name: str) -> list[Path]:
    """Write the three files of a part; none if one of them is there already."""
    if not name.isidentifier() or keyword.iskeyword(name) or name != name.lower():
        sys.exit(f"a name is lower-case words with underscores between them, not {name!r}")
    room = ROOMS[kind]
    parts = [f"## {each}\n\nTODO" for each in HEADINGS[kind]]
    if kind == "study":
        parts.insert(-1, MARKED)  # what scripts/studies_page.py fills in
    page = "\n\n".join([f"# {name}", "TODO", *parts])
    files = {
        ROOT / "src" / "attlas" / room / f"{name}.py": SOURCES[kind].format(name=name),
        ROOT / "tests" / room / f"test_{name}.py": TEST.format(name=name),
        ROOT / "docs" / room / f"{name}.md": page + "\n",
    }
    there = [str(path) for path in files if path.exists()]
    if there:
        sys.exit(f"{there[0]} is there already")
    for path, text in files.items():
        path.write_text(text, encoding="utf-8")
    return list(files)


def indexes() -> dict[Path, str]:
    """The README of each folder of pages, with its list of parts as the records have it."""
    from attlas.measures import MEASURES
    from attlas.methods import FAMILIES, METHODS
    from attlas.objectives import OBJECTIVES
    from attlas.trials import TRIALS

    def links(family: str) -> str:
        parts = [METHODS[name] for name in METHODS.built_in]
        return " · ".join(_link(each.name) for each in parts if each.family == family)

    methods = [f"| **{key}** | {FAMILIES[key]} | {links(key)} |" for key in FAMILIES]
    measures = [
        f"| {_link(each.name)} | {each.kind} | {each.reading} | {each.better} "
        f"| {', '.join(each.needs)} |"
        for each in map(MEASURES.__getitem__, MEASURES.built_in)
    ]
    trials = [
        f"| {_link(name)} | {TRIALS[name].reading} | {TRIALS[name].cost} |"
        for name in TRIALS.built_in
    ]
    objectives = [
        f"| {_link(name)} | {OBJECTIVES[name].reading} | {', '.join(OBJECTIVES[name].needs)} "
        f"| {OBJECTIVES[name].passes or '–'} |"
        for name in OBJECTIVES.built_in
    ]
    return {
        _readme("objectives"): _replaced(
            "objectives", ["objective", "where it is low", "needs", "more passes"], objectives
        ),
        _readme("methods"): _replaced("methods", ["family", "uses", "methods"], methods),
        _readme("measures"): _replaced(
            "measures", ["measure", "about", "the figure", "better", "needs"], measures
        ),
        _readme("trials"): _replaced("trials", ["trial", "asks", "cost"], trials),
    }


def _link(name: str) -> str:
    return f"[{name}]({name}.md)"


def _readme(room: str) -> Path:
    return ROOT / "docs" / room / "README.md"


def _replaced(room: str, head: list[str], rows: list[str]) -> str:
    """The README of a room with the table between its two marks written anew."""
    text = _readme(room).read_text(encoding="utf-8")
    before, _, rest = text.partition(START)
    after = rest.partition(END)[2]
    table = [f"| {' | '.join(head)} |", f"|{'---|' * len(head)}", *rows]
    return before + "\n".join([START, *table, END]) + after


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("kind", choices=[*ROOMS, "index"])
    parser.add_argument("name", nargs="?", help="of the file, the function and on the command line")
    given = parser.parse_args(arguments)
    if given.kind == "index":
        for path, text in indexes().items():
            if path.read_text(encoding="utf-8") != text:
                path.write_text(text, encoding="utf-8")
                print(path.relative_to(ROOT))
    elif given.name is None:
        parser.error(f"a {given.kind} needs a name")
    else:
        for path in write_part(given.kind, given.name):
            print(path.relative_to(ROOT))


if __name__ == "__main__":
    main()
