"""Survey: which types of models in the installed transformers does Attlas open, and correctly?

Every type in seven of transformers' tables of heads is built small with random weights, run on a
small input, and opened. The attention that the tap saw is compared with what transformers itself
returns on its eager implementation, and the output of the opened model with that of eager. With
`--testers`, the models are instead those that the tests of a transformers checkout build, and every
method is tried on them too.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import warnings
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path

os.environ.setdefault("HF_HUB_OFFLINE", "1")

import torch
import transformers

sys.path.insert(0, str(Path(__file__).parent))
import testers
from compatibility_judge import Trial, first_line, judge, limited
from compatibility_models import build, feed, heads, kinds
from compatibility_page import Row, Survey, named, page, read, with_versions

LIMIT = 20  # seconds for one type


def survey(kind: str) -> Row:
    """Build a type, open it, and compare, within the time limit."""
    tried: list[str] = []
    for head, _ in heads(kind):
        try:
            with limited(LIMIT):
                trial = make(kind, head)
                return judge(kind, head, trial)
        except Exception as error:
            tried.append(f"{type(error).__name__}: {error}")
    return Row(kind, heads(kind)[0][0], "not built", {}, note=first_line(tried[0]))


def make(kind: str, head: str) -> Trial:
    """A model of this type with an input that it accepts."""
    model = build(kind, head)
    trial = Trial(model, feed(model, kind))
    trial.output()
    return trial


def survey_all(
    only: Sequence[str] = (), tell: Callable[[Row], None] = lambda row: None
) -> list[Row]:
    """A row for every type, or for the types in `only`."""
    rows = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        transformers.logging.set_verbosity_error()
        for kind in only or kinds():
            rows.append(survey(kind))
            tell(rows[-1])
    return rows


def run(only: Sequence[str] = (), tell: Callable[[Row], None] = lambda row: None) -> Survey:
    """The survey of the installed transformers."""
    version = torch.__version__.split("+")[0]
    return Survey(transformers.__version__, version, survey_all(only, tell))


def show(row: Row) -> None:
    """A row in the terminal."""
    print(f"{row.kind:26}{row.verdict:22}{named(row.sites):32}{row.note}", flush=True)


def main() -> None:
    """Run the survey and show it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", nargs="+", default=(), metavar="TYPE", help="only these types")
    parser.add_argument("--json", action="store_true", help="print the survey as JSON")
    parser.add_argument("--write", type=Path, metavar="PAGE", help="write the page here")
    parser.add_argument(
        "--beside", type=Path, nargs="+", default=(), metavar="FILE", help="JSON of other versions"
    )
    parser.add_argument(
        "--testers", type=Path, metavar="CHECKOUT", help="the models of a transformers checkout"
    )
    parser.add_argument(
        "--out", type=Path, default=testers.OUT, metavar="FOLDER", help="keep what is done here"
    )
    given = parser.parse_args()
    if given.testers:
        testers.survey(given.testers, given.only, given.out, given.write)
        return
    survey = run(given.only, (lambda _: None) if given.json else show)
    if given.json:
        print(json.dumps(asdict(survey), indent=1))
    else:
        print(survey.summary())
    if given.write:
        before = given.write.read_text() if given.write.exists() else ""
        made = page(survey, [read(path) for path in given.beside])
        given.write.write_text(with_versions(made, before))


if __name__ == "__main__":
    main()
