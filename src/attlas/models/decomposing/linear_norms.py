"""Norms as linear maps: with the spread that a row really had, a layer norm is linear in it."""

from dataclasses import dataclass

import torch
from torch import Tensor, nn

TOLERANCE = {torch.float64: 1e-9, torch.float32: 1e-4}


@dataclass(frozen=True, eq=False)
class LinearNorm:
    """A layer norm with the spread of each row held fixed: linear but for its `shift`."""

    gain: Tensor  # `[feature]`
    shift: Tensor  # `[feature]`
    spread: Tensor  # `[batch, query, 1]`: the standard deviation of each row, as the norm took it

    def apart_from_spread(self, vectors: Tensor) -> Tensor:
        """Vectors `[..., feature]` centred and scaled by the gain; rows are yet to be divided."""
        return (vectors - vectors.mean(dim=-1, keepdim=True)) * self.gain.to(vectors)


def is_norm(module: nn.Module) -> bool:
    """Whether a module may be a norm: it has vectors for parameters and nothing else."""
    shapes = [parameter.ndim for parameter in module.parameters()]
    return bool(shapes) and set(shapes) == {1} and not list(module.children())


def linear_norm(module: nn.Module, given: Tensor, gave: Tensor) -> LinearNorm | None:
    """A layer norm as it acted on what it was given; None where it does something else."""
    gain, shift, eps = (getattr(module, name, None) for name in ("weight", "bias", "eps"))
    if not isinstance(gain, Tensor) or not isinstance(eps, float):
        return None
    wide = given.detach() if given.dtype == torch.float64 else given.detach().float()
    moved = torch.zeros_like(gain) if shift is None else shift
    spread = (wide.var(dim=-1, keepdim=True, correction=0) + eps).sqrt()
    found = LinearNorm(gain.detach().to(wide), moved.detach().to(wide), spread)
    again = found.apart_from_spread(wide) / spread + found.shift
    distance = (again - gave.detach().to(wide)).abs().max()
    limit = TOLERANCE.get(given.dtype, 2e-2) * again.abs().max()
    return found if bool(distance <= limit) else None
