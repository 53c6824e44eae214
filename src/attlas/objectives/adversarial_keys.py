"""Adversarial keys: the label is also learned while keys are moved where they harm most."""

import torch
from torch import Tensor

from attlas.errors import UsageError
from attlas.objectives.support.changing import change_at
from attlas.objectives.support.objective import objective
from attlas.objectives.support.sites import Chosen
from attlas.objectives.support.step import TrainingStep
from attlas.results import Site
from attlas.shapes import BatchScores, HeadKeys

LEAST = 1e-12  # length of a gradient that has a direction


@objective(
    paper="Miyato et al. 2017, arXiv:1605.07725",
    reading="The answer is right even where keys are moved a little in the worst direction.",
    does_not_show="That the model is better on texts as they are, or that its attention explains.",
    needs=("labels", "keys"),
    passes=2,
)
def adversarial_keys(
    step: TrainingStep, *, layer: Chosen = "all", reach: float = 0.1
) -> BatchScores:
    """Take the loss of the label with keys moved along the gradient of that loss.

    Args:
        layer: Which layers, from the front or, below zero, the back; several with /, or all.
        reach: How far keys move, as a share of their length, over a layer and a text.
    """
    if not reach > 0:
        raise UsageError(f"reach of adversarial_keys is above 0, not {reach}")
    moves = find_moves(step, layer, reach)
    return step.losses(
        change=change_at(
            step, "adversarial_keys", layer, lambda site, keys: keys + moves[site.name].to(keys)
        )
    )


def find_moves(step: TrainingStep, layer: Chosen, reach: float) -> dict[str, Tensor]:
    """By site, how the keys move: one step up the loss; parameters get no gradient of it."""
    held: dict[str, tuple[Tensor, Tensor]] = {}

    def hold(site: Site, keys: Tensor) -> Tensor:
        move = torch.zeros_like(keys, requires_grad=True)
        held[site.name] = (keys.detach(), move)
        return keys + move

    total = step.losses(change=change_at(step, "adversarial_keys", layer, hold)).sum()
    slopes = torch.autograd.grad(total, [move for _, move in held.values()], materialize_grads=True)
    found = zip(held.items(), slopes, strict=True)
    return {name: move_along(keys, slope, reach) for (name, (keys, _)), slope in found}


def move_along(keys: HeadKeys, slope: HeadKeys, reach: float) -> HeadKeys:
    """The gradient of each text, scaled to this share of the length of all its keys."""
    long, steep = (each.flatten(1).norm(dim=1)[:, None, None, None] for each in (keys, slope))
    moved: Tensor = reach * long * slope / steep.clamp_min(LEAST)
    return moved
