"""What is handed over as text: the Python lines of a state, and the marks of a person."""

import json
from typing import Any

from attlas.serving.requests import Asking, Marking, State
from attlas.serving.shelf import Shelf
from attlas.serving.work.edits import edit_code


def answer_code(shelf: Shelf, state: State) -> dict[str, str]:
    """The Python lines that compute what a state shows."""
    shelf.entry(state.model)
    lines = [*_head(shelf, state), *_explained(state)]
    if state.edits or state.removed:
        lines += _asked(state)
    if state.edits:
        lines += _intervened(state)
    if state.removed:
        lines += _removed(state)
    return {"code": "\n".join(lines) + "\n"}


def _head(shelf: Shelf, state: State) -> list[str]:
    lines = ["import attlas", "", f"subject = attlas.load({shelf.entry(state.model).name!r})"]
    given = state.input
    text = repr(given.text if given.pair is None else (given.text, given.pair))
    if given.picture is not None:
        lines[0:1] = ["from PIL import Image", "", "import attlas"]
        lines.append("picture = Image.open('picture.png').convert('RGB')  # save it there first")
        text = "picture" if given.text is None else f"(picture, {given.text!r})"
    return [*lines, f"text = {text}"]


def _explained(state: State) -> list[str]:
    method = "" if state.method is None else f", {state.method!r}"
    return [
        "",
        f"explanation = attlas.explain(subject, text{method}{_named(state)})",
        "for token, score in zip(explanation.tokens, explanation.scores, strict=True):",
        '    print(f"{token:>16} {score:+.6f}")',
    ]


def _asked(state: State) -> list[str]:
    return [
        "",
        "from attlas.models.encoding.request import Request",
        "",
        f"(question,) = subject.ask([text], Request({_named(state).removeprefix(', ')}))",
    ]


def _intervened(state: State) -> list[str]:
    return [
        "",
        "from math import exp",
        "",
        "from attlas.models.asking.scores import target_scores",
        "",
        "edits = [",
        *(f"    {edit_code(each)}," for each in state.edits),
        "]",
        "before, after = (",
        '    float(target_scores(question, "probability", each)[0]) for each in ([], edits)',
        ")",
        "if question.targets[0].chained:  # of several tokens it is the sum of log-probabilities",
        "    before, after = exp(before), exp(after)",
        'print(f"{question.targets[0].name}: {before:.6f} before, {after:.6f} after the edits")',
        "with subject.tap(edits):",
        "    print(subject.predict([text]))",
    ]


def _removed(state: State) -> list[str]:
    return [
        "",
        "import numpy as np",
        "",
        "from attlas.removing.erasures import Erasures",
        "",
        f"erasures = Erasures([question], {state.removal!r})",
        f"removed = np.isin(erasures.content(0), {list(state.removed)!r})",
        "left = float(erasures.of(0, removed[None]).probability[0])",
        'print(f"{question.targets[0].name}: {left:.6f} without the removed tokens")',
    ]


def _named(asking: Asking) -> str:
    """What is asked, as the arguments that `explain` and `Request` share."""
    known: dict[str, Any] = {"target": asking.target, "position": asking.position}
    known["prefix"] = asking.input.prefix
    return "".join(f", {name}={each!r}" for name, each in known.items() if each is not None)


def rationale_lines(marking: Marking) -> str:
    """Marks as JSON lines that `read_examples(…, spans="spans")` reads."""
    lines = []
    for mark in marking.marks:
        texts = {"text": mark.text}
        if mark.pair is not None:
            texts = {"text_a": mark.text, "text_b": mark.pair}
        spans = [list(each) for each in sorted(set(mark.spans))]
        record = {**texts, "label": mark.label, "spans": spans}
        lines.append(json.dumps(record, ensure_ascii=False) + "\n")
    return "".join(lines)
