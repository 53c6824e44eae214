"""A model's top trained again: with its attention drawn anew, and with none of its own."""

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

SEEDS = "JSD of a model trained again, median of seeds"
SEED_CHANGE = "change of the output when trained again, median of seeds"


@dataclass(frozen=True)
class Retrained:
    """What came of training again; nothing where there was nothing to train on."""

    figures: Mapping[str, TextValues] = field(default_factory=dict)
    sentence: str = ""
    plots: tuple[Mapping[str, Any], ...] = ()
    details: Mapping[str, Any] = field(default_factory=dict)


def retrain(
    copy: AttentionCopy,
    scope: Scope,
    training: Sequence[Example],
    judged: Sequence[Question],
    seeds: int,
    pace: TrainingPace,
    seed: int,
) -> Retrained:
    """Train on every other example, with accuracy by the rest; the copy comes and goes unchanged.

    Weights below the scope stand still. For a seed, query and key weights are drawn anew.
    """
    if not training:
        return Retrained()
    learn, hold = ([training[n] for n in range(start, len(training), 2)] for start in (0, 1))
    if not learn or not hold:
        raise UsageError(f"training again needs two examples at least, not {len(training)}")
    lessons, tests = (_cases(copy, scope, examples) for examples in (learn, hold))
    asked = [make_case(copy, question, scope) for question in judged]
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
    """The examples as questions to the copy whose targets are their labels."""
    labels = copy.subject.labels
    for example in examples:
        if example.label not in labels:
            raise UsageError(f"the label {example.label!r} is none of {', '.join(labels)}")
    cases = []
    for question in ask(copy.subject, [example.text for example in examples], Request()):
        targets = tuple(
            replace(target, name=name, picks=((target.picks[0][0], labels.index(name)),))
            for text, target in zip(question.order, question.targets, strict=True)
            for name in [str(examples[text].label)]
        )
        cases.append(make_case(copy, replace(question, targets=targets), scope))
    return cases


@torch.no_grad()
def _accuracy(cases: Sequence[TrainingCase], attention: Mapping[int, Any] | None = None) -> float:
    right: list[Tensor] = []
    for case in cases:
        logits = case.run(None if attention is None else attention[id(case)]).logits
        place, wanted = zip(*(target.picks[0] for target in case.question.targets), strict=True)
        rows = torch.arange(len(logits), device=logits.device)
        chosen = logits[rows, list(place)].argmax(dim=-1)
        right.append(chosen == torch.tensor(wanted, device=logits.device))
    return float(torch.cat(right).double().mean())


def _retrained(
    accuracy: Mapping[str, Sequence[float]], distances: list[Tensor], changes: list[Tensor]
) -> Retrained:
    figures = {}
    if distances:
        for name, found in ((SEEDS, distances), (SEED_CHANGE, changes)):
            figures[name] = torch.stack(found).median(dim=0).values.double().cpu().numpy()
    means = {name: float(np.mean(found)) for name, found in accuracy.items() if found}
    said = f"With uniform attention and the rest trained again, {means['uniform']:.0%} are right"
    said += f", where the model has {means['as it is']:.0%}"
    if distances:
        said += (
            f"; trained again by {len(distances)} seeds it has {means['seeds']:.0%}, and attends "
            f"{np.nanmean(figures[SEEDS]):.2f} from its own"
        )
    plot = plots.bars(
        "The top of the model trained again",
        means,
        x_label="accuracy on examples that were not trained on",
        reading="Where uniform attention does as well as the model's own, these texts cannot tell "
        "whether attention explains anything.",
    )
    return Retrained(figures, f"{said}.", (plot,), {"accuracy": dict(accuracy)})
