"""Hidden token attribution: how much of each token is in the state that is read out.

Brunner et al., "On Identifiability in Transformers", ICLR 2020.
"""

import torch

from attlas.errors import UsageError
from attlas.methods.support.method import Scored, method
from attlas.models.asking.question import Question
from attlas.models.asking.reading import find_readout
from attlas.models.states.jacobian import squared_gains, width_of
from attlas.shapes import Directions, TokenScores


@method(
    family="P",
    signed=False,
    of=None,
    paper="Brunner et al. 2020, arXiv:1908.04211",
    reading="The token's share in how the hidden state that is read out moves with the input.",
    needs=("embeddings",),
    cost="expensive",
    fills=True,
)
def hidden_token_attribution(
    question: Question, *, layer: int = -1, probes: int | None = None, seed: int = 0
) -> Scored:
    """Score each token by the size of the Jacobian of the state that is read on its embedding.

    The size is the Frobenius norm, over all tokens scaled to a sum of one. `layer`, which counts
    from the top if negative, says after which block the state is taken. `probes` estimates the
    sizes from as many random directions, drawn by `seed`, in place of all features of the state.
    """
    if probes is not None and probes < 1:
        raise UsageError(f"probes of hidden_token_attribution is at least 1, not {probes}")
    readout = find_readout(question)
    features = width_of(question, layer)
    directions = torch.eye(features) if probes is None else draw(probes, features, seed)
    rows = [
        squared_gains(question.rows([row]), readout[row : row + 1], layer, directions)
        for row in range(len(question))
    ]
    return Scored(shares_of(torch.stack(rows)))


def draw(probes: int, features: int, seed: int) -> Directions:
    """Gaussian directions: what they meet is, on average, the squared Frobenius norm."""
    return torch.randn(probes, features, generator=torch.Generator().manual_seed(seed))


def shares_of(squares: TokenScores) -> TokenScores:
    """Norms as shares of their sum; zero where nothing has any."""
    norms = squares.sqrt()
    total = norms.sum(dim=1, keepdim=True)
    return norms / total.where(total > 0, 1)
