"""What the keys of a classifier do: exchanged, replaced, and the freedom of its weights."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from attlas.data.example import Example
from attlas.errors import UsageError
from attlas.mathematics.null_space import ranks, rounding
from attlas.methods.effective_attention import head_values
from attlas.models.asking.filling import fill
from attlas.models.asking.question import Question
from attlas.models.asking.reading import fold_attention
from attlas.models.encoding.request import Request
from attlas.models.subject import Subject
from attlas.models.tap.call import Call
from attlas.studies.support.findings import known_means
from attlas.studies.support.token_importance import agreement_by_layer
from attlas.trials import TRIALS, Scope
from attlas.trials.rewriting.effects import run_rewriting_trial
from attlas.trials.rewriting.rewritings import shuffle_keys
from attlas.trials.rewriting.rewritten_answers import RewritingPlan


def measure_keys(
    subject: Subject,
    examples: Sequence[Example],
    seed: int,
    repeats: int,
    adversary: Mapping[str, Any],
) -> dict[str, Any]:
    """All figures of one model, as JSON; `adversary` holds options of `adversarial_keys`."""
    known = [each for each in examples if each.label in subject.labels]
    if not known:
        raise UsageError(f"none of the texts has a label that {subject.name} knows")
    questions = subject.ask([each.text for each in known], Request(truncate=True))
    gold = {number: subject.labels.index(str(each.label)) for number, each in enumerate(known)}
    plan = RewritingPlan("key_permutation", shuffle_keys, repeats, seed, gold)
    right: dict[str, float] = {}
    for scope in (Scope("all"), Scope("layer")):
        outcome = run_rewriting_trial(fill(questions), scope, plan, "Exchanging keys")
        found = outcome.figures.items()
        right |= {name: float(each.mean()) for name, each in found if name.startswith("right")}
        if scope.kind == "all":
            right["right, all layers"] = right.pop("right")
    return {
        "right": right,
        "adversarial": _adversarial(questions, known, seed, adversary),
        "freedom": [row for question in questions for row in freedom(question)],
        "first layer": _by_layer(questions),
    }


def _adversarial(
    questions: Sequence[Question],
    examples: Sequence[Example],
    seed: int,
    adversary: Mapping[str, Any],
) -> dict[str, float | None]:
    outcome = TRIALS["adversarial_keys"].run(
        questions, seed=seed, gold=True, examples=examples, **adversary
    )
    means = {}
    for name, values in outcome.figures.items():
        seen = values[~np.isnan(values)]
        means[name] = float(seen.mean()) if len(seen) else None
    return means


def freedom(question: Question) -> list[list[int]]:
    """For each text and layer: its keys, the width of a head, and the least and most nullity."""
    rows: list[list[int]] = []

    def look(call: Call) -> None:
        values = head_values(call)
        seen = call.visible.expand(len(values), values.shape[1], -1, -1)[:, :, :1]
        count = seen.sum(dim=-1)[..., 0]
        free = count - ranks(values, seen, rounding(values))
        for text in range(len(values)):
            least, most = int(free[text].min()), int(free[text].max())
            rows.append([int(count[text, 0]), values.shape[-1], least, most])

    fold_attention(question, look)
    return rows


def _by_layer(questions: Sequence[Question]) -> list[float]:
    found = agreement_by_layer(questions, readings=("raw",))["blank-out, raw"]
    means: list[float] = known_means(found).tolist()
    return means
