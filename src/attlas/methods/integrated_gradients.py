"""Integrated gradients: gradients along the straight line from an empty input to this one."""

from collections.abc import Sequence
from dataclasses import replace

import torch

from attlas.errors import UnknownNameError, UsageError
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
from attlas.removing.removal import mask_all, removable
from attlas.shapes import Hidden, StreamVectors, TokenScores

BASELINES = {
    "mask": "everything masked",
    "pad": "padding at every token",
    "zero": "every token's vector zero",
}


@method(
    family="reference",
    signed=True,
    of="logit",
    paper="Sundararajan et al. 2017, arXiv:1703.01365",
    reading="How far the token moves the target, up or down, on the way from an empty input.",
    needs=("embeddings",),
    cost="expensive",
    fills=True,
)
def integrated_gradients(question: Question, *, steps: int = 50, baseline: str = "mask") -> Scored:
    """Score each token by its change from a baseline times the mean gradient on the way.

    The gradient is taken at `steps` midpoints of the straight line. The `baseline` has every
    content token replaced by the `mask` token (or the nearest thing the tokenizer has; a patch is
    blanked), the `pad` token or a `zero` vector. Other tokens keep their vectors and score zero.
    The scores add up to the target's logit minus the baseline's, up to the error of the midpoints,
    which the result states. Another baseline gives other scores.
    """
    if steps < 1:
        raise UsageError(f"steps of integrated_gradients must be at least 1, not {steps}")
    own = entered_vectors(question)
    start = baseline_vectors(question, own, baseline)
    scores = integrate(question, start, own, steps)
    before = score_entering(question, "logit", start)
    after = [found["logit"] for found in question.known_scores] or target_scores(
        question, "logit"
    ).tolist()
    how = f"{steps} midpoints, {baseline} baseline"
    bases = [{"base": value, "base_of": BASELINES[baseline]} for value in before.tolist()]
    notes = _completeness(scores, before.tolist(), after, how)
    return Scored(scores, row_notes=notes, row_details=bases)


def integrate(
    question: Question, start: Sequence[StreamVectors], end: Sequence[StreamVectors], steps: int
) -> TokenScores:
    """Each token's share of what the target gains on the straight line from `start` to `end`."""
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
        streams, _ = embedding_gradients(question.rows(rows), "logit", values)
        gains = [
            (entered.start, inner_products(each, entered.gradient))
            for entered, each in zip(streams, along, strict=True)
        ]
        return rows, over_tokens(question.inputs, gains)

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
    """For each row, a note on how far the scores are from adding up to the gain."""
    gains = zip(scores.sum(dim=1).tolist(), before, after, strict=True)
    return [
        (
            f"{how}: the target gains {last - first:.4g} on the baseline's {first:.4g}, "
            f"and the sum of the scores misses that by {abs(total - (last - first)):.2g}",
        )
        for total, first, last in gains
    ]


def baseline_vectors(
    question: Question, own: Sequence[StreamVectors], name: str
) -> list[StreamVectors]:
    """The vectors of each stream with its content replaced; all other tokens keep their own.

    `own` are the real vectors. `mask` takes those of the mask token (or the nearest thing the
    tokenizer has) and of blank patches, `pad` those of the padding token, `zero` zeros.
    """
    if name not in BASELINES:
        raise UnknownNameError("baseline", name, BASELINES)
    if name == "mask":
        return entered_vectors(question.about(mask_all(question)))
    if name == "pad":
        return entered_vectors(_padded(question))
    content, streams = _content(question), question.inputs.streams()
    return [
        vectors.masked_fill(
            content[:, stream.stop - vectors.shape[1] : stream.stop, None].to(vectors.device), 0
        )
        for vectors, stream in zip(own, streams, strict=True)
    ]


def _padded(question: Question) -> Question:
    inputs, content = question.inputs, _content(question)
    number = getattr(question.subject.tokenizer, "pad_token_id", None)
    if number is None or any(inputs.arguments[each.argument].ndim > 2 for each in inputs.streams()):
        raise UsageError("this input has no padding token: use baseline='mask' or 'zero'")
    changed = {
        stream.argument: inputs.arguments[stream.argument].masked_fill(
            content[:, stream.start : stream.stop].to(question.subject.device), number
        )
        for stream in inputs.streams()
    }
    return question.about(replace(inputs, arguments={**inputs.arguments, **changed}))


def _content(question: Question) -> Hidden:
    """Which tokens of each row may be removed."""
    inputs = question.inputs
    content = torch.zeros(len(inputs), len(inputs.tokens[0]), dtype=torch.bool)
    for row in range(len(inputs)):
        content[row, removable(question, row)] = True
    return content
