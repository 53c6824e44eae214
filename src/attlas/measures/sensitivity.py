"""Sensitivity: how far an explanation moves when the vectors of its tokens move a little."""

from collections.abc import Sequence
from functools import partial
from zlib import crc32

import numpy as np
import torch
from numpy.random import Generator
from numpy.typing import NDArray
from torch import Tensor

from attlas.errors import UsageError
from attlas.keeping import kept
from attlas.measures.support.measure import Occasion, measure
from attlas.measures.support.recomputing import Recipe, question_of
from attlas.models.asking.question import Question
from attlas.models.states.embeddings import entered_vectors
from attlas.models.states.nudging import check_words, nudging
from attlas.removing.removal import removable
from attlas.shapes import Directions, Hidden

RADIUS = 0.02  # of the mean length of the vectors that the content tokens enter as
SAMPLES = 10


@measure(
    better="lower",
    kind="robustness",
    needs=("method",),
    by_rank=False,
    cost="expensive",
    reading="How far the scores move at most, relative to their size, when the tokens' vectors "
    "move by 2 %. It judges the method: scores that are always the same have 0.",
    paper="Yeh et al. 2019, arXiv:1901.09392",
)
def sensitivity(occasion: Occasion) -> float:
    """The largest ‖φ(x′) − φ(x)‖ / ‖φ(x)‖ over the drawn x′; NaN if all scores are zero."""
    question, recipe = question_of(occasion)
    return float(sensitivities([question], recipe, seed=occasion.seed)[0])


def sensitivities(
    questions: Sequence[Question],
    recipe: Recipe,
    *,
    seed: int,
    radius: float = RADIUS,
    samples: int = SAMPLES,
) -> NDArray[np.float64]:
    """The sensitivity of a method on each text, by its place among the texts.

    The vectors of all content tokens of a text move at once, each to a point drawn uniformly from
    a ball around it; `radius` is in units of the mean length of the text's vectors.
    """
    if not radius > 0 or samples < 1:
        raise UsageError(f"radius is above zero and samples at least 1, not {radius} and {samples}")
    found = np.full(1 + max(max(question.order) for question in questions), np.nan)
    for question in questions:
        ask = partial(_farthest, question, recipe, seed, radius, samples)
        (found[list(question.order)],) = kept(f"sensitivity {question.order}", ask)
    return found


def _farthest(
    question: Question, recipe: Recipe, seed: int, radius: float, samples: int
) -> list[list[float]]:
    """How far the scores of each row move at most, in a list of one list."""
    own = dict(recipe.content_scores(question))
    rows = [row for row, text in enumerate(question.order) if own[text].any()]
    found = dict.fromkeys(question.order, np.nan)
    if rows:
        chosen, moves = draw_moves(question, rows, seed, radius, samples)
        copies = question.rows([row for row in rows for _ in range(samples)])
        with nudging(copies, moves, chosen) as moved:
            for text, scores in recipe.content_scores(moved):
                far = np.linalg.norm(scores - own[text]) / np.linalg.norm(own[text])
                found[text] = float(np.fmax(found[text], far))
    return [list(found.values())]


def draw_moves(
    question: Question, rows: Sequence[int], seed: int, radius: float, samples: int
) -> tuple[Hidden, Directions]:
    """Which tokens of these rows move in each sample, and by how much, row after row."""
    check_words(question)
    vectors = torch.cat(entered_vectors(question), dim=1).double().cpu()
    chosen = torch.zeros(len(rows), samples, vectors.shape[1], dtype=torch.bool)
    moves = []
    for number, row in enumerate(rows):
        content = removable(question, row)
        chosen[number, :, content] = True
        random = np.random.default_rng([seed, question.order[row], crc32(b"sensitivity")])
        moves.append(_draw(vectors[row, content], random, radius, samples))
    return chosen.flatten(0, 1), torch.cat(moves).float()


def _draw(vectors: Tensor, random: Generator, radius: float, samples: int) -> Directions:
    """Uniformly from a ball: any direction, a length that is the root of a uniform number."""
    count, width = vectors.shape
    moves = torch.from_numpy(random.standard_normal((samples * count, width)))
    lengths = torch.from_numpy(random.uniform(size=(len(moves), 1))) ** (1 / width)
    moves *= radius * vectors.norm(dim=1).mean() * lengths / moves.norm(dim=1, keepdim=True)
    return moves
