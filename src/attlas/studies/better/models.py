"""Models trained for better attention, and what is measured of each: for the study of that name."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch

from attlas.data.example import Example
from attlas.data.generated.shortcuts import TRIGGERS
from attlas.errors import UnsupportedModelError
from attlas.explaining.explanations import explain
from attlas.judging.judge import judge
from attlas.models.loading.devices import choose_device
from attlas.models.subject import Subject
from attlas.models.teaching.training_tap import opened_for_training
from attlas.objectives.conicity import conicity_of
from attlas.objectives.support.objective import read_aims
from attlas.results import Explanation
from attlas.studies.better.cases import SHORTCUTS, BetterCase
from attlas.studies.better.encoders import LAYERS, train_encoder
from attlas.studies.better.samples import prepare
from attlas.training.examples import Parts
from attlas.training.finetune import USUAL, finetune
from attlas.training.train import train

REMOVALS = ("delete", "mask")
WEIGHTS = ("raw_attention", "attention_rollout")  # ways to read the weights
SHOWN = (*WEIGHTS, "gradient_attention", "attn_lrp", "gradient")  # ways to show a shortcut
EPOCHS, ROWS = 2, 32  # of a transformer that has learned the task already


@dataclass(frozen=True)
class BetterPlan:
    """How models are trained and judged."""

    base: str
    vectors: str | None
    train: int | None  # texts to train on
    count: int  # texts to judge on
    words: int  # the first of each text that are read
    epochs: int | None
    device: str | None


def train_and_judge(data: str, case: BetterCase, plan: BetterPlan, seed: int) -> dict[str, Any]:
    """The figures of one model: accuracy, s and AUPRC of its weights, conicity, shown shortcuts."""
    parts, tested = prepare(data, case, train=plan.train, words=plan.words, seed=seed)
    subject, accuracy = _trained(case, parts, plan, seed)
    asked = tested[: plan.count]
    return {
        "accuracy": accuracy,
        "conicity": conicity_on(subject, [str(each.text) for each in asked]),
        "methods": judged(subject, asked, SHOWN if data == SHORTCUTS else WEIGHTS),
        **(_relied(subject, tested) if data == SHORTCUTS else {}),
    }


def _trained(case: BetterCase, parts: Parts, plan: BetterPlan, seed: int) -> tuple[Subject, float]:
    """The model of a case, and its accuracy on the test texts."""
    device = choose_device(plan.device)
    how: dict[str, Any] = {"vectors": plan.vectors, "epochs": plan.epochs, "seed": seed}
    if case.model in LAYERS:
        return train_encoder(case.model, parts, **how, device=device)
    if case.model:
        trained = train(
            case.model,
            [Example(text, label, parts.spans.get(text, ())) for text, label in parts.train],
            dev=parts.dev,
            test=parts.test,
            objectives=case.objectives,
            device=device,
            **how,
        )
    else:
        chosen = replace(USUAL, seed=seed, rows=ROWS, epochs=plan.epochs or EPOCHS)
        aims = read_aims(case.objectives)
        trained = finetune(plan.base, parts, chosen, aims=aims, device=device)
    return trained.subject, trained.test["accuracy"]


def _relied(subject: Subject, tested: Sequence[Example]) -> dict[str, float]:
    """How often the answer is the one of the word that was put in, whatever the text says."""
    said = subject.predict([each.text for each in tested])["label"]
    follows = [
        (label == "POSITIVE") == (TRIGGERS[1] in str(each.text)[slice(*each.spans[0])])
        for label, each in zip(said, tested, strict=True)
    ]
    return {"follows the word": float(np.mean(follows))}


def judged(
    subject: Subject, examples: Sequence[Example], methods: Sequence[str]
) -> dict[str, dict[str, Any]]:
    """By method, the AUPRC of the marked words, and s: how much of what matters is found.

    A method that is not defined on a model says so in place of its figures.
    """
    found: dict[str, dict[str, Any]] = {}
    made: dict[str, list[Explanation]] = {}
    for method in methods:
        try:
            made[method] = explain(subject, [each.text for each in examples], method, maps=False)
        except UnsupportedModelError as problem:
            found[method] = {"AUPRC": None, "refused": str(problem)}
    # In one call, so that the model is asked once for all methods; but one for each removal: both
    # together would give a licence to each explanation, which costs as much again.
    every = [each for own in made.values() for each in own]
    marks = list(examples) * len(made)
    measures = ["auprc", "location"]
    answers = [
        judge(subject, every, measures, marks=marks, removal=how, shuffles=0) for how in REMOVALS
    ]
    for number, method in enumerate(made):
        own = slice(number * len(examples), (number + 1) * len(examples))
        found[method] = _figures(
            [row for part in answers for each in part[own] for row in each.measured]
        )
    return found


def _figures(rows: Sequence[Any]) -> dict[str, Any]:
    found = {"AUPRC": _mean([row.value for row in rows if row.measure == "auprc"])}
    for how in REMOVALS:
        own = [each for each in rows if each.measure == "location" and each.removal == how]
        found[f"s, {how}"] = share_of_best(
            [(r.value, r.ceiling) for r in own if r.value is not None and r.ceiling is not None]
        )
    return {**found, "s": _mean([found[f"s, {how}"] for how in REMOVALS])}


def share_of_best(pairs: Sequence[tuple[float, float]]) -> float:
    """What was found of what can be found, summed over texts."""
    best = sum(most for _, most in pairs)
    return sum(own for own, _ in pairs) / best if best > 0 else float("nan")


def _mean(values: Sequence[float | None]) -> float | None:
    known = [each for each in values if each is not None]
    return float(np.mean(known)) if known else None


@torch.no_grad()
def conicity_on(subject: Subject, asked: Sequence[str]) -> float:
    """The mean conicity of what the last attention mixes, over texts."""
    found = []
    for text in asked:
        inputs = subject.encode(text)
        with opened_for_training(subject.model) as tap:
            subject.model(**inputs.of_model)
        words = torch.tensor([[not each for each in inputs.tokens[0].special]])
        values: Any = tap.seen.calls[-1].values
        found.append(conicity_of(values.float(), words.to(values.device)).item())
    return float(np.mean(found))
