"""Permuted keys: the label is also learned while words have exchanged their keys."""

import torch
from torch import Tensor

from attlas.objectives.support.changing import change_at
from attlas.objectives.support.objective import objective
from attlas.objectives.support.sites import Chosen
from attlas.objectives.support.step import TrainingStep
from attlas.shapes import BatchScores, KeyOrders, TokenKinds


@objective(
    paper="",
    reading="The answer is right even where the attention is on other words than its own.",
    does_not_show="That the model is better: it may have learned to do without its attention.",
    needs=("labels", "keys"),
    passes=1,
)
def permuted_keys(step: TrainingStep, *, layer: Chosen = "all") -> BatchScores:
    """Take the loss of the label with the keys of the words exchanged in random order.

    Special tokens keep their keys. Every layer has an order of its own, its heads share it.

    Args:
        layer: Which layers, from the front or, below zero, the back; several with /, or all.
    """

    def change(keys: Tensor) -> Tensor:
        order = drawn_orders(step.content, step.random)
        return keys.gather(2, order[:, None, :, None].expand(keys.shape))

    return step.losses(change=change_at(step, "permuted_keys", layer, lambda _, keys: change(keys)))


def drawn_orders(content: TokenKinds, random: torch.Generator) -> KeyOrders:
    """For each text the place that every token takes its key from: words among words."""
    chance = torch.rand(content.shape, generator=random).to(content.device)
    places = torch.arange(content.shape[1], device=content.device).expand_as(content)
    shuffled = chance.masked_fill(~content, 2.0).argsort(dim=1)  # words first, in random order
    ordered = (~content).to(torch.uint8).argsort(dim=1, stable=True)  # words first, as they stand
    exchanged = places.scatter(1, ordered, shuffled)
    return torch.where(content, exchanged, places)
