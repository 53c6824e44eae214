"""LIME: a linear model of how the target takes it when tokens are masked at random."""

from math import sqrt

import torch

from attlas.errors import UsageError
from attlas.methods.support.coalitions import (
    all_coalitions,
    closeness,
    even_coalitions,
    ridge_scores,
)
from attlas.methods.support.masking import one_by_one, over_players, play
from attlas.methods.support.method import Scored, method
from attlas.models.asking.question import Question
from attlas.removing.removal import removable
from attlas.shapes import Coalitions, TokenScores

PENALTY = 1.0
WIDTH = 0.75  # of the kernel, times the square root of the number of tokens


@method(
    family="reference",
    signed=True,
    of="probability",
    paper="Ribeiro et al. 2016, arXiv:1602.04938",
    reading="The token's weight in a linear model of the target's probability near this input.",
    needs=("removal",),
    cost="expensive",
    many_targets=True,
    fills=True,
)
def lime(
    question: Question, *, samples: int = 512, seed: int = 0, width: float | None = None
) -> Scored:
    """Score each token by its slope in a ridge regression on which tokens are masked.

    Half of the tokens are masked at random, `samples` times over; where there are no more sets of
    tokens than that, each is taken once. Sets near the whole weigh more: exp(−d²/2`width`²), d the
    cosine distance; by default `width` is 0.75√n for n tokens, so that the weights differ little.
    Special tokens and the target's own are never masked and score zero.
    """
    if samples < 2:
        raise UsageError(f"samples of lime is at least 2, not {samples}")
    if width is not None and not width > 0:
        raise UsageError(f"width of lime is above zero, not {width}")
    found = [_score(each, samples, seed, width) for each in one_by_one(question)]
    notes = [note for scores, note in found for _ in scores]
    return Scored(torch.cat([scores for scores, _ in found]), row_notes=notes)


def _score(
    question: Question, samples: int, seed: int, width: float | None
) -> tuple[TokenScores, tuple[str, ...]]:
    """The scores of one input, and how they came about."""
    players = len(removable(question, 0))
    present = _coalitions(players, samples, seed)
    width = WIDTH * sqrt(max(players, 1)) if width is None else width
    # All sets stand for as many draws as there would be, so that the penalty counts alike.
    weights = closeness(present, width) * samples / len(present)
    scores = ridge_scores(present, weights, play(question, present), PENALTY)
    how = f"{len(present)} sets of tokens left unmasked, kernel width {width:.3g}, ridge {PENALTY}"
    return over_players(question, scores), (how,)


def _coalitions(players: int, samples: int, seed: int) -> Coalitions:
    if 2**players <= samples:
        return all_coalitions(players)
    return even_coalitions(players, samples, torch.Generator().manual_seed(seed))
