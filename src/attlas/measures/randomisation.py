"""Randomisation: whether an explanation changes when the weights of the model do."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from attlas.errors import ModelError
from attlas.keeping import kept
from attlas.measures.support.measure import Occasion, measure
from attlas.measures.support.recomputing import Recipe, mean_of, question_of
from attlas.methods import Method
from attlas.models.asking.question import Question
from attlas.models.facts.twins import twin_of
from attlas.models.intervening.redrawing import HEAD, find_storeys, redrawn
from attlas.shapes import TokenVector

BLIND_TO_HEAD = "It does not depend on the target, so new weights in the head cannot change it."


@dataclass(frozen=True)
class Cut:
    """How similar the scores of a text are before and after some weights were redrawn.

    `cascade` says whether everything above `storey` was redrawn too, or the storey alone. The
    figures are Spearman correlations, of the scores and of their absolute values: NaN if they are
    all equal, or if the model then gives nothing that can be explained.
    """

    storey: str
    cascade: bool
    scores: float
    sizes: float


@measure(
    better="lower",
    kind="robustness",
    needs=("method",),
    by_rank=False,
    cost="expensive",
    reading="How similar the ranks of the absolute scores stay as the weights are redrawn from "
    "the top down. It judges the method: near 1, it does not depend on the weights.",
    paper="Adebayo et al. 2018, arXiv:1810.03292",
)
def randomisation(occasion: Occasion) -> float:
    """The mean Spearman correlation of |scores| over the cuts of the cascade below the head.

    A method that does not depend on the target cannot change when only the head is redrawn, so
    that cut is left out for all methods.
    """
    question, recipe = question_of(occasion)
    (cuts,) = cascade([question], recipe, seed=occasion.seed).values()
    return figure(cuts)


def figure(cuts: Sequence[Cut]) -> float:
    """The one figure of a text."""
    return mean_of([cut.sizes for cut in cuts if cut.cascade and cut.storey != HEAD])


def cannot_react(method: Method) -> str | None:
    """Why a method cannot react to one of the storeys; None if it can react to all."""
    return BLIND_TO_HEAD if method.of is None else None


def randomise(questions: Sequence[Question], recipe: Recipe, *, seed: int) -> dict[int, list[Cut]]:
    """For each text, by its place: the cuts of the cascade from the top, then each storey alone.

    The weights are drawn once for all texts, for a twin of the model.
    """
    questions = _of_twin(questions)
    own, subject = _scores(questions, recipe), questions[0].subject
    found = _cascade(questions, recipe, own, seed)
    for storey in find_storeys(subject)[::-1]:
        with redrawn(subject, storey, seed):
            for text, cut in _cuts(questions, recipe, own, storey.name, cascade=False):
                found[text].append(cut)
    return found


def cascade(questions: Sequence[Question], recipe: Recipe, *, seed: int) -> dict[int, list[Cut]]:
    """The cuts of the cascade: from the top down, each storey with all that is above it."""
    questions = _of_twin(questions)
    return _cascade(questions, recipe, _scores(questions, recipe), seed)


def _of_twin(questions: Sequence[Question]) -> list[Question]:
    """The same questions of a twin, so that the model keeps its weights."""
    twin = twin_of(questions[0].subject)
    return [replace(question, subject=twin) for question in questions]


def _cascade(
    questions: Sequence[Question], recipe: Recipe, own: Mapping[int, TokenVector], seed: int
) -> dict[int, list[Cut]]:
    subject = questions[0].subject
    found: dict[int, list[Cut]] = {text: [] for text in own}
    with ExitStack() as so_far:
        for storey in find_storeys(subject)[::-1]:
            so_far.enter_context(redrawn(subject, storey, seed))
            for text, cut in _cuts(questions, recipe, own, storey.name, cascade=True):
                found[text].append(cut)
    return found


def _scores(questions: Sequence[Question], recipe: Recipe) -> dict[int, TokenVector]:
    found: dict[int, TokenVector] = {}
    for question in questions:
        ask = partial(_in_order, question, recipe)
        found |= zip(question.order, kept(f"own scores {question.order}", ask), strict=True)
    return found


def _in_order(question: Question, recipe: Recipe) -> list[TokenVector]:
    return [scores for _, scores in recipe.content_scores(question)]


def _cuts(
    questions: Sequence[Question],
    recipe: Recipe,
    own: Mapping[int, TokenVector],
    storey: str,
    *,
    cascade: bool,
) -> Iterator[tuple[int, Cut]]:
    """How similar the scores of each text are to those with the present weights."""
    how = f"{storey} {'and above' if cascade else 'alone'}"
    for question in questions:
        ask = partial(_changed, question, recipe)
        scores = kept(f"{how} {question.order}", ask)
        for text, changed in zip(question.order, scores, strict=True):
            pair = (own[text], changed)
            sizes = spearman(*map(np.abs, pair))
            yield text, Cut(storey, cascade, spearman(*pair), sizes)


def _changed(question: Question, recipe: Recipe) -> list[TokenVector]:
    """The scores of every row; none if the model now gives nothing that can be explained."""
    try:
        return _in_order(question, recipe)
    except ModelError:
        return [np.empty(0) for _ in question.order]


def spearman(one: TokenVector, other: TokenVector) -> float:
    """Spearman's correlation, in which ties share their mean rank; NaN if one side is constant."""
    if len(one) != len(other) or len(one) < 2 or not (np.ptp(one) > 0 and np.ptp(other) > 0):
        return np.nan
    first, second = (_ranks(each) for each in (one, other))
    return float(first @ second / np.sqrt((first @ first) * (second @ second)))


def _ranks(values: TokenVector) -> TokenVector:
    """The rank of each value less the mean rank, ties sharing theirs."""
    _, place, count = np.unique(values, return_inverse=True, return_counts=True)
    last = np.cumsum(count)
    ranks: TokenVector = (last - (count - 1) / 2)[place] - (len(values) + 1) / 2
    return ranks
