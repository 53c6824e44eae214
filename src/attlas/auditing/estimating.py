"""What an audit will take, before it is begun: a few texts are tried and the rest counted."""

from collections.abc import Sequence
from dataclasses import dataclass
from time import perf_counter

import numpy as np
import torch

from attlas.auditing.planning import Plan
from attlas.auditing.settings import Settings
from attlas.errors import AttlasError
from attlas.measures import sizes
from attlas.measures.support.recomputing import Recipe
from attlas.methods import METHODS
from attlas.models.asking.question import Question
from attlas.models.asking.scores import target_scores
from attlas.removing.ceilings import CANDIDATES, WIDTH
from attlas.removing.erasures import Erasures
from attlas.trials import TRIALS

TRIED = {"cpu": 4, "cuda": 48}  # texts of middle length; on a device many take as long as few
SETS = 40  # of tokens removed, to see how quick the model is
SHARED = 0.75  # of the sets that methods ask for, how many no other has asked for
TRIAL_PASSES = {"cheap": 60, "expensive": 600}  # of the model, for one text
TRIAL_ROWS = 50  # changed attentions that share a pass, which takes its time however few they are
FIGURE = 4e-5  # seconds for a figure of a text, beside the model
SLOW_REMOVAL = 2.0  # what a removal through the attention takes more


@dataclass(frozen=True)
class Expected:
    """About how long an audit will take and how much memory, and what it does."""

    texts: int
    seconds: float
    gigabytes: float
    parts: dict[str, float]  # seconds by part

    def lines(self) -> list[str]:
        """The estimate, in lines."""
        total = (
            f"about {_duration(self.seconds)} and {self.gigabytes:.1f} GB for {self.texts} texts"
        )
        return [total, *(f"  {name:<24} {_duration(spent)}" for name, spent in self.parts.items())]


def expect(plan: Plan) -> Expected:
    """Try a few texts by every method, and a few removals, and reckon from there."""
    texts, settings = plan.texts, plan.settings
    order = sorted(range(len(texts)), key=lambda text: texts.lengths[text])
    count = TRIED.get(texts.subject.device.type, TRIED["cpu"])
    first = max(0, (len(order) - count) // 2)
    questions = texts.ask(order[first : first + count])
    explaining = {name: _seconds_a_text(name, questions) for name in settings.methods}
    row = _seconds_a_row(questions)
    cheap, some = len(texts), min(settings.some, len(texts))
    spent = sum(
        seconds * (some if METHODS[name].cost == "expensive" else cheap)
        for name, seconds in explaining.items()
    )
    removing = sum(
        row * _rows(length, settings, int(texts.ranks[text]))
        + FIGURE * _figures(settings, int(texts.ranks[text]))
        for text, length in enumerate(texts.lengths)
    )
    few = min(settings.few, len(texts))
    again = sum((10 * explaining[name] * few for _, name in plan.again), 0.0)
    passes = sum(
        TRIAL_PASSES[TRIALS[name].cost] * (few if TRIALS[name].cost == "expensive" else some)
        for name in settings.trials
    )
    parts = {
        "explaining": spent,
        "removing tokens": removing,
        "asking methods again": again,
        "trials": passes * max(row, _seconds_a_pass(questions[0]) / TRIAL_ROWS),
    }
    return Expected(len(texts), sum(parts.values()), _gigabytes(plan), parts)


def _seconds_a_text(name: str, questions: Sequence[Question]) -> float:
    recipe = Recipe(METHODS[name], {})
    asked = recipe.fill(questions)
    times = 1 if questions[0].subject.device.type == "cpu" else 2  # a device is slow at first
    try:
        for _ in range(times):
            start = perf_counter()
            count = sum(len(list(recipe.content_scores(question))) for question in asked)
    except AttlasError:
        return 0.0
    return (perf_counter() - start) / max(count, 1)


def _seconds_a_row(questions: Sequence[Question]) -> float:
    erasures = Erasures(questions, "mask")
    random = np.random.default_rng(0)
    wanted = {
        text: random.random((SETS, len(erasures.content(text)))) < 0.5
        for question in questions
        for text in question.order
        if len(erasures.content(text)) > 1
    }
    start = perf_counter()
    erasures.ask(wanted)
    return (perf_counter() - start) / max(1, SETS * len(wanted))


def _seconds_a_pass(question: Question) -> float:
    """How long one text takes, the device being warm."""
    start = perf_counter()
    target_scores(question.rows([0]), "probability").cpu()
    return perf_counter() - start


def _figures(settings: Settings, rank: int) -> int:
    """How many figures a text has, those of its shuffles among them."""
    measures = sum(each.ways is not None for each in settings.found(asking=False))
    cases = len(settings.methods_on(rank)) + settings.shuffles
    return len(settings.removals_on(rank)) * measures * cases


def _rows(length: int, settings: Settings, rank: int) -> float:
    """About how many changed texts are asked for one of so many tokens."""
    count = max(length - 2, 1)
    steps = len(sizes(count))
    cases = len(settings.methods_on(rank)) + settings.shuffles
    orders = SHARED * 2 * cases * steps
    ceilings = 2 * (count + WIDTH * CANDIDATES * steps)
    total = 0.0
    for how in settings.removals_on(rank):
        slow = SLOW_REMOVAL if how == "knock_out" else 1.0
        short = 0.6 if how == "delete" else 1.0  # what is left is about half a text
        total += slow * short * (orders + ceilings + 50 + count)
    return total


def _gigabytes(plan: Plan) -> float:
    model = plan.texts.subject.model
    weights = sum(each.numel() * each.element_size() for each in model.parameters())
    sets = max(map(len, plan.parts)) * 5000 * 16
    return (2 * weights + sets) / 2**30 + (0.5 if torch.cuda.is_available() else 0.8)


def _duration(seconds: float) -> str:
    if seconds >= 5400:
        return f"{seconds / 3600:.1f} h"
    return f"{seconds / 60:.0f} min" if seconds >= 90 else f"{seconds:.0f} s"
