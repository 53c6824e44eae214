"""Gradient × attention: attention weights times the gradient of the target on them."""

from collections.abc import Callable, Collection
from functools import partial

import torch
from torch import Tensor

from attlas.errors import UnknownNameError
from attlas.methods.support.method import Scored, method
from attlas.methods.support.token_rows import (
    LayerMean,
    choose_layers,
    fuse_heads,
    reading_sites,
    spread_over_tokens,
)
from attlas.methods.support.top_down import mean_row
from attlas.models.asking.question import Question
from attlas.models.asking.reading import gradients_and_readout
from attlas.models.rows.handing import Handover, is_for_rows, score_handed
from attlas.models.states.block_states import state_gradients
from attlas.results import Site
from attlas.shapes import Attention, TokenScores

ON = ("attention", "states")


@method(
    family="V",
    signed=True,
    of="logit",
    paper="Barkan et al. 2021, doi:10.1145/3459637.3482126",
    maps="sites",
    reading="How far the attention to each token pushes the target up, or down if negative.",
    needs=("attention", "gradients"),
    many_targets=True,
    fills=True,
    learns=True,
    by_rows=True,
    passes=1,
)
def gradient_attention(
    question: Question,
    *,
    layer: int | None = -1,
    positive: bool = False,
    times_attention: bool = True,
    on: str = "attention",
) -> Scored:
    """Score each token by attention times its gradient, at the rows the prediction is read from.

    `layer` counts from the top if negative; None takes the mean over all layers. `positive` sets
    negative products to zero; `times_attention=False` uses the gradient alone. `on="states"` is
    AttCAT: the states that enter a layer times their gradient, weighted by the attention that a
    token receives from all rows; it has no maps. The score is a first-order estimate: it does not
    say what happens if the attention is removed.
    """
    if on not in ON:
        raise UnknownNameError("on", on, ON)
    if on == "states":
        return Scored(score_states(question, layer, positive, times_attention))

    def weighed(attention: Attention, gradient: Attention) -> Attention:
        return weigh(attention, gradient, positive, times_attention)

    chosen = reading_sites(question.inputs, question.subject.sites, layer)
    if is_for_rows(question, chosen):
        return Scored(score_handed(question, chosen, partial(sum_rows, weighed)))
    held = question.subject.sites if question.maps else chosen
    batches = question.batches_holding(held)
    scored = [score_rows(batch, chosen, held, weighed) for batch in batches]
    sites = zip(*(maps for _, maps in scored), strict=True)
    return Scored(
        torch.cat([scores for scores, _ in scored]),
        [(own[0][0], torch.cat([weights for _, weights in own])) for own in sites],
        shows="attention × gradient" if times_attention else "gradient on attention",
    )


def score_states(
    question: Question, layer: int | None, positive: bool, times_attention: bool
) -> TokenScores:
    """States times their gradients, weighted by the attention that each token receives."""
    found = state_gradients(question, "logit")
    sites = [call.site for call, _, _ in found]
    kinds = dict.fromkeys(site.kind for site in sites)
    layers = [choose_layers([s for s in sites if s.kind == kind], layer) for kind in kinds]
    count = {site.name: len(group) for group in layers for site in group}
    rows = [
        (
            call.site.kind,
            weigh_states(call.weights, state, gradient, positive, times_attention)
            / count[call.site.name],
        )
        for call, state, gradient in found
        if call.site.name in count
    ]
    return spread_over_tokens(question.inputs, rows)


def weigh_states(
    attention: Attention, state: Tensor, gradient: Tensor, positive: bool, times_attention: bool
) -> Tensor:
    """A state times its gradient, summed over features, times the attention to its token."""
    wide = torch.promote_types(state.dtype, torch.float32)
    product = torch.einsum("bqf,bqf->bq", state.to(wide).expand_as(gradient), gradient.to(wide))
    if times_attention:
        product = product * fuse_heads(attention).mean(dim=1)
    return product.clamp_min(0) if positive else product


def score_rows(
    question: Question,
    chosen: Collection[Site],
    held: Collection[Site],
    weighed: Callable[[Attention, Attention], Attention],
) -> tuple[TokenScores, list[tuple[Site, Attention]]]:
    """Attention weighted by its gradient, in the rows that the prediction is read from.

    Scores come from the chosen sites; maps, if the question wants them, from all that are held.
    """
    found = gradients_and_readout(question, held)
    mean, maps = LayerMean(), []
    for call, gradient in found.held:
        products = weighed(call.weights, gradient)
        if call.site in chosen:
            mean.add(call.site.kind, fuse_heads(products))
        if question.maps:
            maps.append((call.site, products))
    # The gradient contains the share of each row already: rows are summed, not averaged.
    read = (found.readout > 0).float()
    return spread_over_tokens(question.inputs, mean.rows(question.inputs, read)), maps


def sum_rows(weighed: Callable[[Attention, Attention], Attention], found: Handover) -> TokenScores:
    """The same rows, from what the attention was handed; see `score_rows`."""
    read = (found.readout > 0).to(found.readout)
    return mean_row(
        found.calls, read, lambda part: fuse_heads(weighed(part.weights, part.gradient))
    )


def weigh(
    attention: Attention, gradient: Attention, positive: bool, times_attention: bool
) -> Attention:
    """Attention times gradient, or the gradient alone; `positive` sets negatives to zero."""
    product = attention * gradient if times_attention else gradient
    return product.clamp_min(0) if positive else product
