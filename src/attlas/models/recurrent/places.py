"""Places: vectors of some tokens moved to the front of their rows, and states put back."""

import torch
from torch import Tensor


def last_place(mask: Tensor) -> Tensor:
    """How many tokens there are up to the last marked one, `[batch]`."""
    places = torch.arange(1, mask.shape[1] + 1, device=mask.device)
    return (mask * places).amax(dim=1)


def gathered(vectors: Tensor, own: Tensor) -> tuple[Tensor, Tensor]:
    """The vectors of the marked places moved to the front, and where each of them came from."""
    most = max(1, int(own.sum(dim=1).max()))
    places = (~own).to(torch.uint8).argsort(dim=1, stable=True)[:, :most]
    return vectors.gather(1, places[..., None].expand(-1, -1, vectors.shape[-1])), places


def scattered(states: Tensor, places: Tensor, own: Tensor) -> Tensor:
    """States put back at the places of their tokens; zero at all other places."""
    blank = states.new_zeros(*own.shape, states.shape[-1])
    back = blank.scatter(1, places[..., None].expand_as(states), states)
    return back * own[..., None]
