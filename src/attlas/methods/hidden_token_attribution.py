"""Hidden token attribution: how much of each token is in the hidden state that is read.

Brunner et al., "On Identifiability in Transformers", ICLR 2020.
"""

from collections.abc import Mapping
from typing import Any

import torch

from attlas.errors import UsageError
from attlas.methods.support.method import Scored, method
from attlas.models.asking.question import Question
from attlas.models.asking.reading import find_readout
from attlas.models.states.jacobian import squared_gains, width_of
from attlas.shapes import Directions, TokenScores

WIDTH = 768  # of hidden states, where the model does not say


def weigh(question: Question, options: Mapping[str, Any]) -> float:
    """About how many passes over a text it takes."""
    width = getattr(question.subject.model.config, "hidden_size", None) or WIDTH
    return float(1.5 * (options["probes"] or width))


@method(
    family="P",
    signed=False,
    of=None,
    paper="Brunner et al. 2020, arXiv:1908.04211",
    reading="The token's share in how the hidden state that is read changes with the input.",
    needs=("embeddings",),
    cost="expensive",
    fills=True,
    learns=True,
    weighs=weigh,
)
def hidden_token_attribution(
    question: Question, *, layer: int = -1, probes: int | None = None, seed: int = 0
) -> Scored:
    """Score each token by the Jacobian of the state that is read with respect to its embedding.

    The score is the Frobenius norm, scaled so that the scores sum to one. `layer`, which counts
    from the top if negative, says after which block the state is taken. `probes` estimates the
    norms from that many random directions, drawn by `seed`, instead of all features of the state.
    The target plays no part, apart from where it is read.
    """
    if probes is not None and probes < 1:
        raise UsageError(f"probes of hidden_token_attribution must be at least 1, not {probes}")
    readout = find_readout(question)
    features = width_of(question, layer)
    directions = torch.eye(features) if probes is None else draw(probes, features, seed)
    rows = [
        squared_gains(question.rows([row]), readout[row : row + 1], layer, directions)
        for row in range(len(question))
    ]
    return Scored(shares_of(torch.stack(rows)))


def draw(probes: int, features: int, seed: int) -> Directions:
    """Gaussian directions: the mean squared product with them is the squared Frobenius norm."""
    return torch.randn(probes, features, generator=torch.Generator().manual_seed(seed))


def shares_of(squares: TokenScores) -> TokenScores:
    """Norms as shares of their sum; zeros if all are zero."""
    norms = squares.sqrt()
    total = norms.sum(dim=1, keepdim=True)
    return norms / total.where(total > 0, 1)
