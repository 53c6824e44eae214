"""Erasure: attention weights set to zero, one or many, until the model decides otherwise."""

from collections.abc import Mapping, Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from attlas.errors import UsageError
from attlas.models.asking.question import Question
from attlas.trials.rewriting.erasing import Erasing
from attlas.trials.rewriting.erasure_findings import flip_table, plots_of, sentence_of
from attlas.trials.rewriting.erasure_plan import ErasurePlan
from attlas.trials.support.findings import estimates_of
from attlas.trials.support.outputs import is_other, jensen_shannon
from attlas.trials.support.scope import Scope
from attlas.trials.support.trial import TrialOutcome, seed_for, trial


@trial(
    cost="expensive",
    paper="Serrano & Smith 2019, arXiv:1906.03731",
    reading="Does the decision hang on the largest weights more than on others?",
    does_not_show=(
        "That the tokens do not matter: what a token says has often reached other positions, or "
        "the one that is read, before the layer whose weights are erased."
    ),
    needs=("attention", "gradients", "branches"),
    fills=True,
)
def erasure(
    questions: Sequence[Question],
    scope: Scope = Scope(),  # noqa: B008
    *,
    seed: int = 0,
    draws: int = 5,
    steps: int = 50,
) -> TrialOutcome:
    """Erase the largest weight against a random one; then more and more until the decision turns.

    A weight is that of a token at the scope, in all its heads and rows; what is erased goes to the
    other weights in proportion. The sets grow by one of four orders: attention, the gradient of the
    target's probability on the weights, signed, gradient × attention, and random, `draws` times. A
    text of more than `steps` weights is taken in so many even steps. The text itself is the same
    throughout.
    """
    if draws < 1 or steps < 1:
        raise UsageError(f"draws and steps are at least 1, not {draws} and {steps}")
    if scope.kind == "layer" and scope.layer is None:
        raise UsageError("weights are erased in one layer: give its number with the scope")
    found = {
        number: text
        for question in questions
        for number, text in zip(
            question.order, _erase(question, scope, seed, draws, steps), strict=True
        )
    }
    if not found:
        raise UsageError("erasure needs at least one text")
    texts = tuple(sorted(found))
    names = found[texts[0]].keys()
    figures = {name: np.array([found[text][name] for text in texts]) for name in names}
    estimates, table = estimates_of(figures), flip_table(figures)
    return TrialOutcome(
        figures,
        texts,
        sentence_of(figures),
        plots=plots_of(figures, table),
        notes=(f"scope: {scope}",),
        details={"scope": str(scope), "estimates": estimates, "flips": table},
    )


def _erase(
    question: Question, scope: Scope, seed: int, draws: int, steps: int
) -> list[Mapping[str, float]]:
    """The figures of each text of a batch."""
    erasing = Erasing(question, scope)
    weighed = erasing.weigh()
    erasable = weighed.erasable.cpu().numpy()
    scores = [each.cpu().numpy() for each in (weighed.weight, weighed.gradient, weighed.product)]
    plans = [
        ErasurePlan.of(
            erasable[row],
            [each[row] for each in scores],
            np.random.default_rng(seed_for(seed, number, "erasure")),
            draws,
        )
        for row, number in enumerate(question.order)
    ]
    most = min(steps, int(erasable.sum(axis=1).max()))
    sets = np.stack([plan.sets(most) for plan in plans], axis=1)
    divergence, turned = _changes(erasing, torch.from_numpy(sets))
    return [
        plan.figures(divergence[:, row], turned[:, row], most) for row, plan in enumerate(plans)
    ]


def _changes(erasing: Erasing, sets: Tensor) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """How far each set moves the answer, and whether it turns the decision: `[set, batch]`.

    The first set is the empty one, which the others are held against.
    """
    clean, divergence, turned = None, [], []
    for answers in erasing.answers(sets.to(erasing.question.subject.device)):
        clean = answers[0] if clean is None else clean
        divergence.append(jensen_shannon(clean.expand_as(answers), answers))
        turned.append(is_other(clean.expand_as(answers), answers))
    return torch.cat(divergence).cpu().numpy(), torch.cat(turned).cpu().numpy()
