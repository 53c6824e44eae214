"""LIME: a linear model of the target's probability as tokens are masked at random."""

from math import sqrt

import torch

from attlas.errors import UsageError
from attlas.methods.support.coalitions import (
    all_coalitions,
    closeness,
    even_coalitions,
    ridge_scores,
)
from attlas.methods.support.masking import one_by_one, over_players, probabilities_unmasked
from attlas.methods.support.method import Scored, method
from attlas.models.asking.question import Question
from attlas.removing.removal import removable
from attlas.shapes import Coalitions, TokenScores

PENALTY = 1.0
WIDTH = 0.75  # the width of the kernel is this times the square root of the number of tokens


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
    weighs=lambda question, options: options["samples"],
)
def lime(
    question: Question, *, samples: int = 512, seed: int = 0, width: float | None = None
) -> Scored:
    """Score each token by its slope in a ridge regression on which tokens are masked.

    Half of the tokens are masked at random (drawn by `seed`), `samples` times; if there are no more
    sets of tokens than that, each is used once. A set has the weight exp(−d²/2`width`²), where d is
    its cosine distance from the full set; by default `width` is 0.75√n for n tokens, so that the
    weights differ little. Special tokens and the target's own tokens are never masked and score
    zero. Masked texts may be unlike anything the model was trained on.
    """
    if samples < 2:
        raise UsageError(f"samples of lime must be at least 2, not {samples}")
    if width is not None and not width > 0:
        raise UsageError(f"width of lime must be above zero, not {width}")
    scored = [_score(each, samples, seed, width) for each in one_by_one(question)]
    notes = [note for scores, note in scored for _ in scores]
    return Scored(torch.cat([scores for scores, _ in scored]), row_notes=notes)


def _score(
    question: Question, samples: int, seed: int, width: float | None
) -> tuple[TokenScores, tuple[str, ...]]:
    """The scores of one input, and a note on how they were computed."""
    players = len(removable(question, 0))
    present = _coalitions(players, samples, seed)
    width = WIDTH * sqrt(max(players, 1)) if width is None else width
    # The weights sum as if all `samples` were drawn, so that the penalty has the same effect.
    weights = closeness(present, width) * samples / len(present)
    scores = ridge_scores(present, weights, probabilities_unmasked(question, present), PENALTY)
    how = f"{len(present)} sets of tokens left unmasked, kernel width {width:.3g}, ridge {PENALTY}"
    return over_players(question, scores), (how,)


def _coalitions(players: int, samples: int, seed: int) -> Coalitions:
    if 2**players <= samples:
        return all_coalitions(players)
    return even_coalitions(players, samples, torch.Generator().manual_seed(seed))
