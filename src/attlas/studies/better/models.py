"""Models trained for better attention, and what is measured of each: for the study of that name."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from random import Random
from typing import Any

import numpy as np
import torch

from attlas.data import texts
from attlas.data.example import Example
from attlas.data.generated.shortcuts import TRIGGERS
from attlas.data.spans import words_of
from attlas.errors import UnsupportedModelError
from attlas.explaining.explanations import explain
from attlas.judging.judge import judge
from attlas.models.loading.devices import choose_device
from attlas.models.subject import Subject
from attlas.models.teaching.training_tap import opened_for_training
from attlas.objectives.conicity import conicity_of
from attlas.objectives.support.objective import read_aims
from attlas.training.examples import PARTS_OF, Parts, read_parts
from attlas.training.finetune import USUAL, finetune
from attlas.training.train import train

PLAIN, PLANTED, UNPLANTED = "labels alone", "shortcut planted", "words planted at random"
SHORTCUTS, RECURRENT = "shortcuts", "sst"
REMOVALS = ("delete", "mask")
WEIGHTS = ("raw_attention", "attention_rollout")  # ways to read the weights
SHOWN = (*WEIGHTS, "gradient_attention", "attn_lrp", "gradient")  # ways to show a shortcut
EPOCHS = 2  # of a transformer that has learned the task already


@dataclass(frozen=True)
class BetterCase:
    """One way of training: its name, its objectives, and a recurrent model instead of the base."""

    name: str
    objectives: tuple[str, ...] = ()
    model: str = ""


_TRANSFORMER = (
    "rationale:weight=1",
    "conicity:weight=1",
    "disagreement:weight=0.5",
    "masked:weight=1",
    "permuted_keys:weight=1",
    "adversarial_keys:weight=1",
)


_RECURRENT = ("rationale:weight=0.5", "conicity:weight=0.5", "masked:weight=1")
_DECEPTIVE = ("deception:weight=1",)


def cases_of(data: str, objectives: Sequence[str] = ()) -> list[BetterCase]:
    """The ways of training on a set: with the labels alone, then with each objective.

    Each set has objectives of its own; named ones are those of them that are trained for.
    """
    if data == SHORTCUTS:
        return [BetterCase(UNPLANTED), BetterCase(PLANTED)]
    model = "bilstm" if data == RECURRENT else ""
    own = {RECURRENT: _RECURRENT, **dict.fromkeys(PARTS_OF, _DECEPTIVE)}.get(data, _TRANSFORMER)
    chosen = [
        BetterCase(each.partition(":")[0], (each,), model)
        for each in own
        if not objectives or each in objectives
    ]
    all_of_sst = data == RECURRENT and not objectives
    last = [BetterCase("orthogonal_lstm", (), "orthogonal_lstm")] if all_of_sst else []
    return [BetterCase(PLAIN, (), model), *chosen, *last]


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
    parts, tested = prepare(data, case, plan, seed)
    device = choose_device(plan.device)
    if case.model:
        trained = train(
            case.model,
            [Example(text, label, parts.spans.get(text, ())) for text, label in parts.train],
            dev=parts.dev,
            test=parts.test,
            vectors=plan.vectors or None,
            objectives=case.objectives,
            epochs=plan.epochs,
            seed=seed,
            device=device,
        )
    else:
        chosen = replace(USUAL, seed=seed, epochs=plan.epochs or EPOCHS)
        aims = read_aims(case.objectives)
        trained = finetune(plan.base, parts, chosen, aims=aims, device=device)
    subject = trained.subject
    asked = tested[: plan.count]
    methods = SHOWN if data == SHORTCUTS else WEIGHTS[: 1 if case.model else 2]
    return {
        "accuracy": trained.test["accuracy"],
        "conicity": conicity_on(subject, [str(each.text) for each in asked]),
        **judged(subject, asked, methods, removing=data != SHORTCUTS),
        **(_relied(subject, tested) if data == SHORTCUTS else {}),
    }


def prepare(
    data: str, case: BetterCase, plan: BetterPlan, seed: int
) -> tuple[Parts, list[Example]]:
    """The texts to train on and to test on, cut to their first words, and those to judge on."""
    name = RECURRENT if data == SHORTCUTS else data
    parts = read_parts(name, count=plan.train, seed=seed)
    read = _tested(name)
    if data == SHORTCUTS:
        random = Random(seed)
        parts = replace(
            parts,
            train=[_planted(each, random, case.name == PLANTED) for each in parts.train],
            dev=[_planted(each, random, case.name == PLANTED) for each in parts.dev],
            spans={},
        )
        return parts, [_with_trigger(each, random) for each in read]
    examples = [
        cut(Example(text, label, parts.spans.get(text, ())), plan.words)
        for text, label in parts.train
    ]
    shorter = [
        [(cut(Example(text, label), plan.words).text, label) for text, label in part]
        for part in (parts.dev, parts.test or [(each.text, str(each.label)) for each in read])
    ]
    spans = {each.text: each.spans for each in examples if each.spans}
    train = [(each.text, str(each.label)) for each in examples]
    parts = replace(parts, train=train, dev=shorter[0], test=shorter[1], spans=spans)
    marked = [each for each in (cut(each, plan.words) for each in read) if each.spans]
    return parts, Random(0).sample(marked, len(marked))


def _tested(name: str) -> list[Example]:
    if name in PARTS_OF:
        return texts(PARTS_OF[name], split=f"{name}_test")
    return texts(name, split=None if name == "reviews" else "test")


def cut(example: Example, words: int) -> Example:
    """The first words of a text, with the marks that are in them."""
    places = words_of(example.text)[:words]
    end = places[-1][1] if places else 0
    spans = tuple((start, min(stop, end)) for start, stop in example.spans if start < end)
    return replace(example, text=example.text[:end], spans=spans)


def _planted(each: tuple[Any, str], random: Random, decides: bool) -> tuple[str, str]:
    """A text with one of two words in it: that of its label, or any."""
    text, label = each
    number = int(label == "POSITIVE") if decides else random.randrange(2)
    return _insert(text, TRIGGERS[number], random).text, label


def _with_trigger(example: Example, random: Random) -> Example:
    found = _insert(str(example.text), random.choice(TRIGGERS), random)
    return replace(found, label=example.label)


def _insert(text: str, word: str, random: Random) -> Example:
    words = text.split()
    place = random.randint(0, len(words))
    start = len(" ".join(words[:place])) + (place > 0)
    whole = " ".join([*words[:place], word, *words[place:]])
    return Example(whole, None, ((start, start + len(word)),))


def _relied(subject: Subject, tested: Sequence[Example]) -> dict[str, float]:
    """How often the answer is the one of the word that was put in, whatever the text says."""
    said = subject.predict([each.text for each in tested])["label"]
    follows = [
        (label == "POSITIVE") == (TRIGGERS[1] in str(each.text)[slice(*each.spans[0])])
        for label, each in zip(said, tested, strict=True)
    ]
    return {"follows the word": float(np.mean(follows))}


def judged(
    subject: Subject, examples: Sequence[Example], methods: Sequence[str], *, removing: bool
) -> dict[str, Any]:
    """By method, s (of what matters, how much is found) and the AUPRC of the marked words."""
    found: dict[str, Any] = {}
    asked = [each.text for each in examples]
    for method in methods:
        try:
            made = explain(subject, asked, method)
        except UnsupportedModelError as problem:
            found[method] = {"AUPRC": None, "refused": str(problem)}
            continue
        measures = ["auprc", *(["location"] if removing else [])]
        ways = [judge(subject, made, measures, marks=list(examples), removal=REMOVALS, shuffles=0)]
        rows = [row for every in ways for each in every for row in each.measured]
        found[method] = {"AUPRC": _mean([r.value for r in rows if r.measure == "auprc"])}
        for how in REMOVALS if removing else ():
            own = [r for r in rows if r.measure == "location" and r.removal == how]
            found[method][f"s, {how}"] = share_of_best(
                [(r.value, r.ceiling) for r in own if r.value is not None and r.ceiling is not None]
            )
        if removing:
            each = [found[method][f"s, {how}"] for how in REMOVALS]
            found[method]["s"] = float(np.mean(each))
    return {"methods": found}


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


def gains(
    found: Mapping[str, Mapping[str, Sequence[Mapping[str, Any]]]],
    data: str,
    case: str,
    read: Any,
) -> list[float]:
    """Seed by seed, how much a figure is higher with an objective than with the labels alone."""
    before, after = found[data][PLAIN], found[data][case]
    pairs = [(read(one), read(other)) for one, other in zip(before, after, strict=False)]
    return [other - one for one, other in pairs if one is not None and other is not None]
