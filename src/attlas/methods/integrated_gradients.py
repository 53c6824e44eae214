"""Integrated gradients: what is gained on the straight way from an empty input to this one."""

from collections.abc import Sequence

import torch

from attlas.errors import UsageError
from attlas.methods.support.baselines import baseline_vectors
from attlas.methods.support.method import Scored, method
from attlas.methods.support.vectors import inner_products, wide
from attlas.models.asking.memory import in_fitting_batches, rows_of
from attlas.models.asking.question import Question
from attlas.models.asking.scores import target_scores
from attlas.models.states.embeddings import (
    embedding_gradients,
    entered_vectors,
    over_tokens,
    score_entering,
)
from attlas.shapes import StreamVectors, TokenScores


@method(
    family="reference",
    signed=True,
    of="logit",
    paper="Sundararajan et al. 2017, arXiv:1703.01365",
    reading="What the token brings the target, up or down, on the way from an empty input.",
    needs=("embeddings",),
    cost="expensive",
    fills=True,
)
def integrated_gradients(question: Question, *, steps: int = 50, baseline: str = "mask") -> Scored:
    """Score each token by the gradient along the way from a baseline times the way, over features.

    `steps` midpoints of the way are taken. The `baseline` has every content token replaced by the
    `mask` token (the nearest thing the tokenizer has; blank patches), the `pad` token or a `zero`
    vector. Other tokens keep their vectors and score zero. The scores add up to the target's logit
    less the baseline's, but for the error of the midpoints, which the result names.
    """
    if steps < 1:
        raise UsageError(f"steps of integrated_gradients is at least 1, not {steps}")
    own = entered_vectors(question)
    start = baseline_vectors(question, own, baseline)
    scores = integrate(question, start, own, steps)
    before = score_entering(question, "logit", start)
    after = [found["logit"] for found in question.known_scores] or target_scores(
        question, "logit"
    ).tolist()
    how = f"{steps} midpoints, {baseline} baseline"
    return Scored(scores, row_notes=_completeness(scores, before.tolist(), after, how))


def integrate(
    question: Question, start: Sequence[StreamVectors], end: Sequence[StreamVectors], steps: int
) -> TokenScores:
    """Each token's part of what is gained on the straight way from `start` to `end`."""
    ways = [wide(last) - wide(first) for first, last in zip(start, end, strict=True)]
    total = ways[0].new_zeros(len(question), len(question.inputs.tokens[0]))
    points = [(row, (step + 0.5) / steps) for row in range(len(question)) for step in range(steps)]

    def gain(numbers: Sequence[int]) -> tuple[list[int], TokenScores]:
        rows = [points[number][0] for number in numbers]
        how_far = torch.tensor([points[number][1] for number in numbers], device=total.device)
        along = [way[rows] for way in ways]
        values = [
            torch.addcmul(wide(first)[rows], each, how_far.to(each)[:, None, None])
            for first, each in zip(start, along, strict=True)
        ]
        found, _ = embedding_gradients(question.rows(rows), "logit", values)
        parts = [
            (entered.start, inner_products(each, entered.gradient))
            for entered, each in zip(found, along, strict=True)
        ]
        return rows, over_tokens(question.inputs, parts)

    most = rows_of(total.device, total.shape[1])
    for first in range(0, len(points), most):
        numbers = range(first, min(first + most, len(points)))
        for rows, gained in in_fitting_batches(
            numbers, gain, "one text at one midpoint does not fit"
        ):
            total.index_add_(0, torch.tensor(rows, device=total.device), gained)
    return total / steps


def _completeness(
    scores: TokenScores, before: Sequence[float], after: Sequence[float], how: str
) -> list[tuple[str, ...]]:
    """How far the scores of each row are from adding up to what they should."""
    gains = zip(scores.sum(dim=1).tolist(), before, after, strict=True)
    return [
        (
            f"{how}: the target gains {last - first:.4g} on the baseline's {first:.4g}, "
            f"and the scores miss that by {abs(total - (last - first)):.2g}",
        )
        for total, first, last in gains
    ]
