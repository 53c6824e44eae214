"""Received attention: how much all positions look at a token."""

from torch import Tensor

from attlas.methods.support.token_rows import spread_over_tokens
from attlas.models.asking.reading import fold_attention
from attlas.registering import Question, Scored, method
from attlas.shapes import Attention


@method(
    family="W",
    signed=False,
    of=None,
    paper="",
    reading="How much attention the token receives, on average over layers, heads and positions.",
    needs=("attention",),
)
def received_attention(question: Question) -> Scored:
    """Score each token by the attention it receives from all positions, heads and layers.

    Attention that a token receives need not reach the prediction.
    """
    rows = fold_attention(question, lambda call: (call.site.kind, received(call.weights))).held
    return Scored(spread_over_tokens(question.inputs, rows) / len(rows))


def received(weights: Attention) -> Tensor:
    """The mean over heads and queries, `[batch, key]`."""
    return weights.float().mean(dim=(1, 2))
