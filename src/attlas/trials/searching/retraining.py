"""Retrain the upper part of a model, from new attention weights and with uniform attention."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from attlas.data.example import Example
from attlas.errors import UsageError
from attlas.models.asking.ask import ask
from attlas.models.asking.question import Question
from attlas.models.encoding.request import Request
from attlas.models.intervening.attention_copy import AttentionCopy
from attlas.results.support import plots
from attlas.shapes import TextValues
from attlas.trials.searching.trained_copy import (
    TrainingCase,
    TrainingPace,
    labelled,
    make_case,
    train,
)
from attlas.trials.support.scope import Scope
from attlas.trials.support.trial import seed_for

SEEDS = "JSD of a retrained model, median of seeds"
SEED_CHANGE = "change of the output of a retrained model, median of seeds"


@dataclass(frozen=True)
class Retrained:
    """What retraining found; empty if there were no examples to train on."""

    figures: Mapping[str, TextValues] = field(default_factory=dict)
    sentence: str = ""
    plots: tuple[Mapping[str, Any], ...] = ()
    details: Mapping[str, Any] = field(default_factory=dict)


def retrain(
    copy: AttentionCopy,
    scope: Scope,
    training: Sequence[Example],
    tested: Sequence[Question],
    seeds: int,
    pace: TrainingPace,
    seed: int,
) -> Retrained:
    """Train on every other example and test on the rest; the copy is restored afterwards.

    Weights below the scope are not trained. Each seed draws new query and key weights.
    """
    if not training:
        return Retrained()
    learn, hold = ([training[n] for n in range(start, len(training), 2)] for start in (0, 1))
    if not learn or not hold:
        raise UsageError(f"retraining needs at least two examples, not {len(training)}")
    lessons, tests = (_cases(copy, scope, examples) for examples in (learn, hold))
    asked = [make_case(copy, question, scope) for question in tested]
    whole = {name: value.clone() for name, value in copy.subject.model.state_dict().items()}
    accuracy: dict[str, list[float]] = {"as it is": [_accuracy(tests)], "seeds": []}
    distances, changes = [], []
    for number in range(seeds):
        random = torch.Generator().manual_seed(seed_for(seed, number, "seeds"))
        for each in copy.weights:
            each.weight.data.mul_(~each.trainable)
            each.shake(1.0, random)
        train(copy, copy.free_all(), lessons, labelled, pace)
        accuracy["seeds"].append(_accuracy(tests))
        with torch.no_grad():
            passed = [(case, case.run()) for case in asked]
            distances.append(torch.cat([case.distance(one) for case, one in passed]))
            changes.append(torch.cat([case.change(one) for case, one in passed]))
        copy.subject.model.load_state_dict(whole)
    even = {id(case): case.uniform() for case in (*lessons, *tests)}
    train(copy, copy.free_all(), lessons, lambda case: labelled(case, even[id(case)]), pace)
    accuracy["uniform"] = [_accuracy(tests, even)]
    copy.subject.model.load_state_dict(whole)
    return _retrained(accuracy, distances, changes)


def _cases(copy: AttentionCopy, scope: Scope, examples: Sequence[Example]) -> list[TrainingCase]:
    """The examples as questions to the copy, with their labels as targets."""
    labels = copy.subject.labels
    for example in examples:
        if example.label not in labels:
            raise UsageError(f"unknown label {example.label!r}: the model has {', '.join(labels)}")
    cases = []
    for question in ask(copy.subject, [example.text for example in examples], Request()):
        targets = tuple(
            replace(target, name=name, picks=((target.picks[0][0], labels.index(name)),))
            for text, target in zip(question.order, question.targets, strict=True)
            for name in [str(examples[text].label)]
        )
        cases.append(make_case(copy, question.asking(targets), scope))
    return cases


@torch.no_grad()
def _accuracy(cases: Sequence[TrainingCase], attention: Mapping[int, Any] | None = None) -> float:
    right: list[Tensor] = []
    for case in cases:
        logits = case.run(None if attention is None else attention[id(case)]).logits
        place, labels = zip(*(target.picks[0] for target in case.question.targets), strict=True)
        rows = torch.arange(len(logits), device=logits.device)
        chosen = logits[rows, list(place)].argmax(dim=-1)
        right.append(chosen == torch.tensor(labels, device=logits.device))
    return float(torch.cat(right).double().mean())


def _retrained(
    accuracy: Mapping[str, Sequence[float]], distances: list[Tensor], changes: list[Tensor]
) -> Retrained:
    figures = {}
    if distances:
        for name, found in ((SEEDS, distances), (SEED_CHANGE, changes)):
            figures[name] = torch.stack(found).median(dim=0).values.double().cpu().numpy()
    means = {name: float(np.mean(found)) for name, found in accuracy.items() if found}
    said = f"Retrained with uniform attention, the model is right on {means['uniform']:.0%}"
    said += f" of the examples, compared with {means['as it is']:.0%} as it is"
    if distances:
        said += (
            f"; retrained from {len(distances)} seeds, it is right on {means['seeds']:.0%}, and "
            f"its attention is {np.nanmean(figures[SEEDS]):.2f} from its own"
        )
    plot = plots.bars(
        "The upper part of the model, retrained",
        means,
        x_label="accuracy on examples that were not trained on",
        reading="If uniform attention does as well as the model's own, these texts cannot show "
        "whether attention explains anything.",
    )
    return Retrained(figures, f"{said}.", (plot,), {"accuracy": dict(accuracy)})
