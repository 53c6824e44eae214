"""Random proposals for a search: rows of attention that move to single keys.

The divergence from the model's attention is convex, so the farthest attention that keeps the output
has nearly all rows on one key each. Steps along a gradient hardly ever change that key; these do.
"""

from collections.abc import Sequence
from math import log

import torch
from torch import Tensor

from attlas.models.asking.filling import fillers
from attlas.models.asking.question import Question
from attlas.shapes import FreeWeights
from attlas.trials.searching.leeway import Leeway, Shares
from attlas.trials.support.trial import seed_for

COLDEST, HOTTEST = 0.003, 3.0  # near 0 a row takes its farthest key; at 3 any key
WHOLE = 0.6  # of the proposals move rows all the way to their keys


class Proposals:
    """New candidates made from others, at random, drawn for each text by itself."""

    def __init__(
        self, question: Question, leeways: Sequence[Leeway], copies: int, seed: int
    ) -> None:
        self.leeways, self.copies = leeways, copies
        self._gains = [key_divergences(each.own) for each in leeways]
        self._fillers = [fillers(tokens) for tokens in question.inputs.tokens]
        self._texts = [_generator(seed, text, "proposals") for text in question.order]
        self._sites = [
            [_generator(seed, text, f"{each.site.name} proposals") for text in question.order]
            for each in leeways
        ]

    def made_from(self, parents: Shares, everywhere: Tensor) -> list[Tensor]:
        """Move some rows of each parent towards a key each; where `everywhere`, move all rows.

        Of `n` rows, one to all move, each number as likely as its double.
        """
        rows = torch.stack([each.counted.sum(dim=(1, 2)) for each in self.leeways]).sum(dim=0)
        drawn = torch.stack([torch.rand(self.copies, 3, generator=g) for g in self._texts], dim=1)
        moving, heat, way = drawn.to(rows.device).unbind(dim=-1)
        share = torch.where(everywhere[:, None], 1.0, rows.clamp_min(1) ** -moving)
        heat = COLDEST * (HOTTEST / COLDEST) ** heat
        way = ((1 - way) / (1 - WHOLE)).clamp_max(1)
        numbers = zip(parents, self.leeways, self._gains, self._sites, strict=True)
        made = []
        for parent, leeway, gains, generators in numbers:
            random = self._uniform(leeway, generators)
            chosen = _drawn_keys(random[..., :-1], gains / _wide(heat), leeway.free)
            moves = random[..., -1:] < _wide(share)
            made.append(torch.where(moves, parent + _wide(way) * (chosen - parent), parent))
        return made

    def _uniform(self, leeway: Leeway, generators: Sequence[torch.Generator]) -> Tensor:
        """Numbers for each key, and one more for each row, `[copy, batch, head, row, key + 1]`."""
        _, heads, rows, keys = leeway.free.shape
        values = torch.ones(self.copies, len(generators), heads, rows, keys + 1)
        for text, (generator, filled) in enumerate(zip(generators, self._fillers, strict=True)):
            own = int((leeway.rows < keys - filled).sum()) if filled else rows
            shape = (self.copies, heads, own, keys - filled + 1)
            drawn = torch.rand(shape, generator=generator)
            values[:, text, :, :own, : keys - filled] = drawn[..., :-1]
            values[:, text, :, :own, -1] = drawn[..., -1]
        return values.to(leeway.free.device)


def key_divergences(own: FreeWeights) -> Tensor:
    """The Jensen–Shannon divergence of all weight on one key from these rows, for each key."""
    lost = torch.xlogy(own, 2 * own / (1 + own))
    return ((1 - own) * log(2) + lost + (2 / (1 + own)).log()) / 2


def _drawn_keys(uniform: Tensor, preference: Tensor, free: Tensor) -> Tensor:
    """One free key of each row, drawn with odds of the exponential of the preference."""
    gumbel = -(-uniform.clamp(1e-9, 1 - 1e-7).log()).log()
    best = (preference + gumbel).masked_fill(~free, -torch.inf).argmax(dim=-1, keepdim=True)
    return torch.zeros_like(gumbel).scatter_(-1, best, 1) * free


def _wide(values: Tensor) -> Tensor:
    """Values of each copy and text, to be used with attention."""
    return values[..., None, None, None]


def _generator(seed: int, text: int, purpose: str) -> torch.Generator:
    return torch.Generator().manual_seed(seed_for(seed, text, purpose))
