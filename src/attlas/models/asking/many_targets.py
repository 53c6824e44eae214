"""Several targets of one input: each token that a model wrote, read at its own place.

The model runs once. Everything above the last block works on each place separately, so one backward
pass through it serves all targets; below it, each target has its own backward pass.
"""

from collections.abc import Iterator, Sequence

import torch
from torch import Tensor

from attlas.errors import UsageError
from attlas.models.encoding.inputs import Inputs
from attlas.models.encoding.target import Target
from attlas.shapes import Hidden


def share_of_each(gradient: Tensor, targets: Sequence[Target]) -> Iterator[Tensor]:
    """Split the gradient on the last stream by target: each one owns the places it is read at."""
    taken: set[int] = set()
    for target in targets:
        places = {place for place, _ in (*target.picks, *target.contrast)}
        if taken & places:
            raise UsageError("several targets of one input must be read at different places")
        taken |= places
        own = torch.zeros_like(gradient)
        for place in places:
            own[:, place] = gradient[:, place]
        yield own


def reached_tokens(inputs: Inputs, targets: Sequence[Target]) -> Hidden:
    """Which tokens each target can depend on, `[target, token]`: up to where it is read."""
    stream = inputs.prefix or inputs.source
    last = torch.tensor([max(place for place, _ in target.picks) for target in targets])
    positions = torch.arange(len(inputs.tokens[0]))
    return (positions <= stream.stop + last[:, None]) | (positions >= stream.stop)


def differentiate_each(
    scores: Tensor, leaves: Sequence[Tensor], stream: Tensor, targets: Sequence[Target]
) -> list[Tensor | None]:
    """The gradient of each target on each leaf, `[target, …]`; None if a leaf has no influence."""
    (above,) = torch.autograd.grad(scores.sum(), stream, retain_graph=True)
    rows = [
        torch.autograd.grad(stream, leaves, own, retain_graph=True, allow_unused=True)
        for own in share_of_each(above, targets)
    ]
    return [
        None if column[0] is None else torch.cat([each for each in column if each is not None])
        for column in zip(*rows, strict=True)
    ]
