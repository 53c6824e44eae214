"""Gradient × attention: weigh each attention by how much the target would move with it."""

from attlas.methods.method import Scored, method
from attlas.models.question import Question
from attlas.quantities.token_rows import (
    choose_layers,
    fuse_heads,
    read_row,
    reading_kinds,
    spread_over_tokens,
)
from attlas.shapes import Attention


@method(
    family="V",
    signed=True,
    of="logit",
    paper="Barkan et al. 2021, doi:10.1145/3459637.3482126",
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
    found = question.gradients("logit")
    weighed = [
        (call.site, weigh(call.weights, gradient, positive, times_attention))
        for call, gradient in found
    ]
    read = (question.readout() > 0).float()
    rows = []
    for kind in reading_kinds(question.inputs, [site for site, _ in weighed]):
        maps = choose_layers([each for site, each in weighed if site.kind == kind], layer)
        # The gradient holds the share of each row already: rows are summed, not averaged.
        chosen = [read_row(fuse_heads(each), read) for each in maps]
        rows.append((kind, sum(chosen[1:], chosen[0]) / len(chosen)))
    return Scored(spread_over_tokens(question.inputs, rows), weighed)


def weigh(
    attention: Attention, gradient: Attention, positive: bool, times_attention: bool
) -> Attention:
    """Attention times gradient, or the gradient alone; what is below zero dropped if asked."""
    product = attention * gradient if times_attention else gradient
    return product.clamp_min(0) if positive else product
