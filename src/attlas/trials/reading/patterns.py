"""What a head looks at, as patterns: for each row, the keys that it would have to look at."""

from math import nan

import torch
from torch import Tensor

from attlas.mathematics.divergences import entropy
from attlas.shapes import (
    Attention,
    HeadMeans,
    QueryMarks,
    TokenIds,
    TokenKinds,
    Visible,
    WantedKeys,
)

LOOKS = {
    "previous": "the token before",
    "next": "the token after",
    "same": "the token itself",
    "first": "the first token",
    "separator": "special tokens",
    "induction": "what came after the same token before",
}


def wanted_keys(pattern: str, ids: TokenIds, special: TokenKinds) -> WantedKeys:
    """Where a pattern of LOOKS has each row look; a row may have no such key.

    Neighbours, the token itself and what came before are for rows of content tokens alone.
    """
    places = torch.arange(ids.shape[-1], device=ids.device)
    apart = places - places[:, None]  # how far a key is to the right of a query
    content = ~special
    steps = {"previous": -1, "same": 0, "next": 1}
    if pattern in steps:
        return content[:, :, None] & (apart == steps[pattern])
    if pattern == "first":
        return ((places == 0) & (apart != 0)).expand(len(ids), -1, -1)
    if pattern == "separator":
        return special[:, None] & (apart != 0)
    came_before = ids.roll(1, dims=-1)[:, None] == ids[:, :, None]
    known = content[:, :, None] & (content & content.roll(1, dims=-1))[:, None]
    return came_before & known & (places > 0) & (apart < 0)


def attention_to(
    weights: Attention, wanted: WantedKeys, visible: Visible, rows: QueryMarks
) -> HeadMeans:
    """The attention each head gives the wanted keys, as a mean over those rows that see one.

    NaN where none does.
    """
    seen = wanted[:, None] & visible & rows[:, None, :, None]
    return _mean((weights * seen).sum(dim=-1), seen.any(dim=-1))


def breadth(weights: Attention, visible: Visible, rows: QueryMarks) -> HeadMeans:
    """Over how many keys each head spreads, from 0 for one alone to 1 for all that a row sees.

    Their number is the exponential of the entropy. Rows that see one key alone do not count.
    """
    counts = visible.sum(dim=-1)
    whole = weights.sum(dim=-1, keepdim=True).clamp_min(torch.finfo(weights.dtype).tiny)
    others = entropy(weights / whole).exp() - 1
    return _mean(others / (counts - 1).clamp_min(1), (counts > 1) & rows[:, None])


def evenly(visible: Visible) -> Attention:
    """The attention of a head to which all keys that it sees are the same."""
    return visible / visible.sum(dim=-1, keepdim=True).clamp_min(1)


def _mean(values: Tensor, counted: Tensor) -> HeadMeans:
    """The mean over the rows that count, from `[batch, head, query]`."""
    marks = counted.expand_as(values)
    total, count = (values * marks).sum(dim=-1), marks.sum(dim=-1)
    return torch.where(count > 0, total / count.clamp_min(1), torch.full_like(total, nan))
