"""How long an audit will take, estimated from a few texts before it begins."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from time import perf_counter

import numpy as np
import torch

from attlas.auditing.plan import AuditPlan
from attlas.auditing.settings import AuditSettings
from attlas.auditing.work.explained import verdict_recipes
from attlas.errors import AttlasError
from attlas.explaining.plan import Plan
from attlas.mathematics.token_effects import MOST_STEPS
from attlas.measures import sizes
from attlas.measures.support.recomputing import Recipe
from attlas.methods import METHODS
from attlas.models.asking.memory import free_bytes
from attlas.models.asking.question import Question
from attlas.models.asking.scores import target_scores
from attlas.models.intervening.training import TrainingPlan, fresh_copy, labelled_batches, train
from attlas.removing.ceilings import CANDIDATES, WIDTH
from attlas.removing.erasures import Erasures
from attlas.removing.unusualness import VERSIONS
from attlas.trials import TRIALS
from attlas.trials.relearning.curves import count_trainings

SAMPLE = {"cpu": 4, "cuda": 48}  # texts of middle length; a GPU takes as long for many as for few
QUICK = 1.0  # seconds that a method may take to be tried again
SETS = 40  # of removed tokens for each text, to time the model
UNSHARED = 0.75  # of the sets that a method removes, the share that no other method removes
CHEAP_PASSES, EXPENSIVE_PASSES = 60, 600  # of the model, that a trial takes for one text
TRIAL_ROWS = 50  # changed attentions that share a pass
FIGURE = 4e-5  # seconds to compute a figure of a text, the model aside
SLOW_REMOVAL = 2.0  # the cost of a removal through the attention, compared with others


@dataclass(frozen=True)
class AuditEstimate:
    """About how much time and memory an audit will take."""

    texts: int
    seconds: float
    gigabytes: float
    seconds_by_work: dict[str, float]

    def shared_by(self, workers: int) -> "AuditEstimate":
        """The estimate if this many processes share a processor, each timed as this one was."""
        by_work = {name: each / workers for name, each in self.seconds_by_work.items()}
        memory = self.gigabytes * workers
        return AuditEstimate(self.texts, self.seconds / workers, memory, by_work)

    def plan(self, audit: AuditPlan) -> Plan:
        """The estimate as the plan of an audit."""
        subject, lengths = audit.texts.subject, audit.texts.lengths
        return Plan(
            "audit",
            subject.name,
            str(subject.device),
            self.texts,
            sum(lengths),
            max(lengths),
            None,
            self.seconds,
            self.seconds_by_work,
            int(self.gigabytes * 2**30),
            sum(each.numel() * each.element_size() for each in subject.model.parameters()),
            free_bytes(subject.device),
            max(map(len, audit.batches)),
            "every method on a text of middle length, and the model without tokens",
            "how often each is done, and memory",
        )


def estimate(plan: AuditPlan) -> AuditEstimate:
    """Time every method and some removals on a few texts, and extrapolate."""
    texts, settings = plan.texts, plan.settings
    order = sorted(range(len(texts)), key=lambda text: texts.lengths[text])
    count = SAMPLE.get(texts.subject.device.type, SAMPLE["cpu"])
    first = max(0, (len(order) - count) // 2)
    questions = texts.ask(order[first : first + count])
    one = questions if texts.subject.device.type == "cuda" else [questions[0].rows([0])]
    explaining = {
        name: _seconds_a_text(Recipe(METHODS[name], {}), one) for name in settings.methods
    }
    row = _seconds_a_row(questions)
    expensive = min(settings.texts_for_expensive, len(texts))
    slowest = min(settings.texts_for_slowest, len(texts))
    removing = sum(
        row * _rows(length, plan, int(texts.ranks[text]))
        + FIGURE * _figures(plan, int(texts.ranks[text]))
        for text, length in enumerate(texts.lengths)
    )
    trial_passes = sum(
        CHEAP_PASSES * expensive if TRIALS[name].cost == "cheap" else EXPENSIVE_PASSES * slowest
        for name in settings.trials
    )
    own = sum(_seconds_a_text(recipe, one) for recipe in verdict_recipes(settings.methods))
    by_work = {
        "explaining": own * len(texts)
        + sum(
            seconds * (len(texts) if METHODS[name].cost == "cheap" else expensive)
            for name, seconds in explaining.items()
        ),
        "removing tokens": removing,
        "running methods again": sum(
            (10 * explaining[name] * slowest for _, name in plan.robustness), 0.0
        ),
        "checking removals": 2 * VERSIONS * slowest * row * len(plan.removals),
        "trials": trial_passes * max(row, _seconds_a_pass(questions[0]) / TRIAL_ROWS),
    }
    if plan.training is not None:
        by_work["training again"] = _seconds_retraining(plan, questions, explaining)
    return AuditEstimate(len(texts), sum(by_work.values()), _gigabytes(plan), by_work)


def _seconds_retraining(
    plan: AuditPlan, questions: Sequence[Question], explaining: Mapping[str, float]
) -> float:
    """Train a copy on a few texts, and extrapolate to all copies, epochs and training texts."""
    assert plan.training is not None
    options, subject = TRIALS["remove_and_retrain"].options, plan.texts.subject
    shares, forms = options["shares"], options["forms"]
    batches = labelled_batches(questions, dict.fromkeys(range(len(plan.texts)), 0))
    copy = fresh_copy(subject, options["start"], 0)
    start = perf_counter()
    train(copy, batches, TrainingPlan(options["start"], 1, None, options["rows"]), 0)
    seconds = (perf_counter() - start) / sum(map(len, questions)) * options["epochs"]
    trainings = count_trainings(options["methods"], shares, forms)
    each = sum(explaining.get(name, 0.0) for name in options["methods"])
    return float(len(plan.training.examples) * (trainings * seconds + len(shares) * each))


def _seconds_a_text(recipe: Recipe, questions: Sequence[Question]) -> float:
    """How long a text takes; what is quick is tried twice, since the first time is slower."""
    asked, seconds, count = recipe.fill(questions), 0.0, 0
    try:
        for _ in range(2):
            start = perf_counter()
            count = sum(len(list(recipe.content_scores(question))) for question in asked)
            seconds = perf_counter() - start
            if seconds > QUICK:
                break
    except AttlasError:
        return 0.0
    return seconds / max(count, 1)


def _seconds_a_row(questions: Sequence[Question]) -> float:
    erasures = Erasures(questions, "mask")
    random = np.random.default_rng(0)
    sets = {
        text: random.random((SETS, len(erasures.content(text)))) < 0.5
        for question in questions
        for text in question.order
        if len(erasures.content(text)) > 1
    }
    start = perf_counter()
    erasures.ask(sets)
    return (perf_counter() - start) / max(1, SETS * len(sets))


def _seconds_a_pass(question: Question) -> float:
    """How long one text takes on a device that is warm."""
    start = perf_counter()
    target_scores(question.rows([0]), "probability").cpu()
    return perf_counter() - start


def _figures(plan: AuditPlan, rank: int) -> int:
    """How many figures a text has, with those of its shuffles."""
    settings = plan.settings
    cases = len(settings.methods_on(rank)) + settings.shuffles
    measures = [each for each in settings.measures_of_scores if each.ways is not None]
    if rank >= settings.texts_for_expensive:
        measures = [each for each in measures if each.shares_ways]
    return len(plan.verdict_removals) * len(measures) * cases


def _rows(length: int, plan: AuditPlan, rank: int) -> float:
    """About how many changed versions of a text of this length the model has to read."""
    count, settings = max(length - 2, 1), plan.settings
    walks = 2 * settings.pairs * min(count, MOST_STEPS)
    curves = 0.0
    if rank < settings.texts_for_expensive and _has_curves(settings):
        steps = len(sizes(count))
        cases = len(settings.methods_on(rank)) + settings.shuffles
        ceilings = 2 * (count + WIDTH * CANDIDATES * steps)
        curves = UNSHARED * 2 * cases * steps + ceilings + 50 + count
    total = sum(_weight(how) * walks for how in plan.verdict_removals)
    return total + sum(_weight(how) * curves for how in settings.removals_on(rank))


def _has_curves(settings: AuditSettings) -> bool:
    return any(each.ways and not each.shares_ways for each in settings.measures_of_scores)


def _weight(how: str) -> float:
    """The cost of a removal compared with masking; about half of a text is left by deleting."""
    return {"delete": 0.6, "knock_out": SLOW_REMOVAL}.get(how, 1.0)


def _gigabytes(plan: AuditPlan) -> float:
    model = plan.texts.subject.model
    weights = sum(each.numel() * each.element_size() for each in model.parameters())
    sets = max(map(len, plan.batches)) * 5000 * 16
    return (2 * weights + sets) / 2**30 + (0.5 if torch.cuda.is_available() else 0.8)
