"""Gradient × attention: weigh each attention by how much the target would move with it."""

from collections.abc import Callable, Collection

import torch

from attlas.methods.method import Scored, method
from attlas.models.question import Question
from attlas.quantities.token_rows import (
    LayerMean,
    fuse_heads,
    reading_sites,
    spread_over_tokens,
)
from attlas.results import Site
from attlas.shapes import Attention, TokenScores


@method(
    family="V",
    signed=True,
    of="logit",
    paper="Barkan et al. 2021, doi:10.1145/3459637.3482126",
    maps="sites",
    reading="How far the attention paid to each token pushes the target up, or down if negative.",
)
def gradient_attention(
    question: Question,
    *,
    layer: int | None = -1,
    positive: bool = False,
    times_attention: bool = True,
) -> Scored:
    """Score each token by attention times its gradient, at the rows the prediction is read from.

    `layer` counts from the top if negative; None takes the mean over all layers. `positive` keeps
    what speaks for the target alone; `times_attention=False` takes the gradient alone.
    """

    def weighed(attention: Attention, gradient: Attention) -> Attention:
        return weigh(attention, gradient, positive, times_attention)

    sites = reading_sites(question.inputs, question.subject.sites, layer)
    scores = torch.cat([score_rows(part, sites, weighed) for part in question.parts(sites)])
    found = question.gradients("logit") if question.maps else []
    return Scored(
        scores, [(call.site, weighed(call.weights, gradient)) for call, gradient in found]
    )


def score_rows(
    question: Question,
    sites: Collection[Site],
    weighed: Callable[[Attention, Attention], Attention],
) -> TokenScores:
    """The rows that the prediction is read from, of attention weighed by its gradient."""
    found = question.gradients_and_readout(sites)
    mean = LayerMean()
    for call, gradient in found.held:
        mean.add(call.site.kind, fuse_heads(weighed(call.weights, gradient)))
    # The gradient holds the share of each row already: rows are summed, not averaged.
    return spread_over_tokens(question.inputs, mean.rows((found.readout > 0).float()))


def weigh(
    attention: Attention, gradient: Attention, positive: bool, times_attention: bool
) -> Attention:
    """Attention times gradient, or the gradient alone; what is below zero dropped if asked."""
    product = attention * gradient if times_attention else gradient
    return product.clamp_min(0) if positive else product
