"""Search for attention that is far from a model's own and keeps its output, many texts at once.

Every text has some candidates for each tolerance, and all candidates share each pass of the upper
blocks. The steps of a candidate do not depend on other texts, so a batch finds what each text would
find alone.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from attlas.keeping import kept
from attlas.models.asking.filling import fillers
from attlas.models.asking.question import Question
from attlas.models.branching.upper_blocks import UpperBlocks, find_upper_blocks
from attlas.models.facts.evaluation_mode import evaluation_mode
from attlas.shapes import SiteWeights
from attlas.trials.searching.leeway import (
    Leeway,
    Shares,
    answers_of,
    attention_of,
    divergence,
    find_leeways,
    frozen_above,
    key_divergences,
    largest_divergence,
    read_sites,
)
from attlas.trials.support.outputs import total_variation
from attlas.trials.support.scope import Scope
from attlas.trials.support.trial import seed_for

SPREAD = 3.0  # of the first candidates' logits, as in Jain and Wallace
NEAR, LEAST = 0.3, 1e-4  # spread of candidates near the model's own; the smallest share there
HALVINGS = 12
ENOUGH = 0.9999  # of the largest possible distance
COLDEST, HOTTEST = 0.003, 3.0  # near 0 a row takes its farthest key; at 3 any key
WHOLE = 0.6  # of the proposals move rows all the way to their keys
Watch = Callable[[Tensor, Tensor], None]  # is told the best distance so far, and its change


@dataclass(frozen=True)
class SearchPlan:
    """How to search: candidates for each tolerance, rounds of exchange, steps of Adam."""

    tolerances: tuple[float, ...] = (0.01, 0.05)
    candidates: int = 5
    steps: int = 30
    rate: float = 0.7
    rounds: int = 80
    penalty: float = 500.0  # for leaving the tolerance on the way

    @property
    def copies(self) -> int:
        """How many rows each text takes."""
        return len(self.tolerances) * self.candidates


@dataclass(frozen=True, eq=False)
class FarthestAttention:
    """For each tolerance and text, the farthest attention, its distance, and the output's change.

    `distance` and `change` are `[tolerance, batch]`; without any other attention it is the model's.
    """

    leeways: Sequence[Leeway]
    shares: Shares  # each `[tolerance, batch, head, row, key]`
    distance: Tensor
    change: Tensor


class Search:
    """Candidates for the texts of one question, and the best of those that keep the output."""

    def __init__(
        self, question: Question, scope: Scope, plan: SearchPlan, watch: Watch = lambda *_: None
    ) -> None:
        self.question, self.plan, self.watch = question, plan, watch
        self.top: UpperBlocks = find_upper_blocks(
            question, read_sites(question, scope), plan.copies
        )
        self.leeways = find_leeways(scope.open_sites(question), self.top.clean)
        self.held = frozen_above(self.top, self.leeways)
        self.base = answers_of(question, self.top.logits)
        self.own: Shares = [each.own for each in self.leeways]
        tolerances = torch.tensor(plan.tolerances, dtype=self.base.dtype, device=self.base.device)
        self.tolerances = tolerances[:, None]
        shape = (len(plan.tolerances), len(question))
        self.best = [own.expand(shape[0], *own.shape).clone() for own in self.own]
        self.distance = torch.zeros(shape, device=self.base.device)
        self.change = torch.zeros(shape, dtype=self.base.dtype, device=self.base.device)

    def run(self, seed: int) -> FarthestAttention:
        """Search, or take what was found and kept; the result is the same."""
        name = f"search within {self.plan.tolerances} {self.question.order}"
        distance, change, *best = kept(name, partial(self._found, seed))
        self.distance = torch.from_numpy(distance).to(self.distance)
        self.change = torch.from_numpy(change).to(self.change)
        pairs = zip(self.best, best, strict=True)
        self.best = [torch.from_numpy(each).to(own) for own, each in pairs]
        return FarthestAttention(self.leeways, self.best, self.distance, self.change)

    def _found(self, seed: int) -> list[NDArray[np.float64]]:
        """Search from the farthest corners, by exchange, by steps, and by exchange again.

        If a corner is as far as any attention can be, the search stops there.
        """
        count = range(self.plan.candidates)
        corners = [torch.stack([each.least(n) for n in count]) for each in self.leeways]
        proposals = Proposals(self.question, self.leeways, self.plan.copies, seed)
        half = self.plan.rounds // 2
        with evaluation_mode(self.question.subject.model):
            self._pull_back([each.repeat(len(self.best[0]), 1, 1, 1, 1) for each in corners])
            if not bool((self.distance >= ENOUGH * largest_divergence(self.leeways)).all()):
                self._exchange(proposals, half)
                starts = zip(self.leeways, self.best, strict=True)
                self._pull_back(self._optimise([self._first(*each, seed) for each in starts]))
                self._exchange(proposals, self.plan.rounds - half)
        found = (self.distance, self.change, *self.best)
        return [each.detach().double().cpu().numpy() for each in found]

    @torch.no_grad()
    def _exchange(self, proposals: "Proposals", rounds: int) -> None:
        """Ask about random proposals, most of them the best so far with some rows changed.

        Of several candidates, the last is new in every row, as in a random search, and the one
        before it has some rows of the model's own attention changed.
        """
        number, count = self._numbers(), self.plan.candidates
        from_own = ((number >= count - 2) & (number > 0))[:, None, None, None, None]
        is_new = (number == count - 1) & (number > 0)
        for _ in range(rounds):
            best = [each.repeat_interleave(count, dim=0) for each in self.best]
            pairs = zip(self.own, best, strict=True)
            made = proposals.made_from([torch.where(from_own, o, b) for o, b in pairs], is_new)
            self._keep(made, divergence(self.leeways, made, self.own), self._change(made))

    def _numbers(self) -> Tensor:
        """The number of each copy among the candidates for its tolerance."""
        return torch.arange(self.plan.copies, device=self.base.device) % self.plan.candidates

    def _first(self, leeway: Leeway, best: Tensor, seed: int) -> Tensor:
        """Logits to start from: near the model's own, near the best so far, and random ones.

        A search that starts far away may not find the way back if the output needs the attention.
        """
        noise = torch.zeros(self.plan.copies, *leeway.free.shape)
        texts = zip(self.question.order, self.question.inputs.tokens, strict=True)
        for row, (text, tokens) in enumerate(texts):
            keys = leeway.free.shape[-1] - fillers(tokens)
            rows = int((leeway.rows < keys).sum()) if fillers(tokens) else len(leeway.rows)
            own = torch.Generator().manual_seed(seed_for(seed, text, leeway.site.name))
            shape = (self.plan.copies, leeway.free.shape[1], rows, keys)
            noise[:, row, :, :rows, :keys] = torch.randn(shape, generator=own)
        noise = noise.to(leeway.free.device)
        known = best.repeat_interleave(self.plan.candidates, dim=0)
        number = self._numbers()[:, None, None, None, None]
        near = torch.where(number % 2 == 0, leeway.own, known).clamp_min(LEAST).log() + NEAR * noise
        return torch.where(number % 4 == 3, SPREAD * noise, near).requires_grad_()

    def _optimise(self, logits: list[Tensor]) -> list[SiteWeights]:
        optimiser = torch.optim.Adam(logits, lr=self.plan.rate, amsgrad=True)
        for _ in range(self.plan.steps):
            shares = [g.softmax(each) for g, each in zip(self.leeways, logits, strict=True)]
            change = self._change(shares)
            distance = divergence(self.leeways, shares, self.own)
            self._keep(shares, distance, change)
            excess = change.unflatten(0, (-1, self.plan.candidates)) - self.tolerances[:, None]
            gain = distance.nansum() + self._apart(shares).nansum()
            optimiser.zero_grad()
            (self.plan.penalty * excess.clamp_min(0).sum() - gain).backward()
            optimiser.step()
        with torch.no_grad():
            return [g.softmax(each) for g, each in zip(self.leeways, logits, strict=True)]

    def _apart(self, shares: Shares) -> Tensor:
        """How far apart the candidates of a text are: 1/k(k − 1) of the sum over pairs."""
        k = self.plan.candidates
        grouped = [each.unflatten(0, (-1, k)) for each in shares]
        turns = [
            divergence(self.leeways, grouped, [each.roll(turn, dims=1) for each in grouped])
            for turn in range(1, k)
        ]
        total = torch.stack(turns).sum(dim=(0, 2)) if turns else shares[0].new_zeros(1)
        return total / (2 * max(k * (k - 1), 1))

    def _change(self, shares: Shares) -> Tensor:
        """How far each candidate moves the output, `[copy, batch]`."""
        attention = {**self.held, **attention_of(self.leeways, shares)}
        found = answers_of(self.question, self.top.run(attention).logits)
        return total_variation(found, self.base)

    @torch.no_grad()
    def _keep(self, shares: Shares, distance: Tensor, change: Tensor) -> None:
        """Keep candidates that are within a tolerance and farther away than the best so far."""
        within = change[None] <= self.tolerances[:, None]
        farthest, copy = torch.where(within, distance[None], -1).max(dim=1)
        better = farthest > self.distance
        batch = torch.arange(len(self.question), device=copy.device)
        self.distance = torch.where(better, farthest, self.distance)
        self.change = torch.where(better, change[copy, batch], self.change)
        where = better[..., None, None, None]
        self.best = [
            torch.where(where, new[copy, batch], old)
            for new, old in zip(shares, self.best, strict=True)
        ]
        self.watch(self.distance, self.change)

    @torch.no_grad()
    def _pull_back(self, ends: Shares) -> None:
        """Move from each end towards the model's own attention until the output is near enough.

        Bisection works because the distance is convex: it grows from the model's own outwards.
        """
        tolerance = self.tolerances.repeat_interleave(self.plan.candidates, dim=0)
        near = torch.zeros_like(tolerance.expand(-1, len(self.question)))
        step = torch.ones_like(near)
        for _ in range(HALVINGS + 1):
            way = (near + step)[..., None, None, None].float()
            shares = [o + way * (e - o) for o, e in zip(self.own, ends, strict=True)]
            change = self._change(shares)
            self._keep(shares, divergence(self.leeways, shares, self.own), change)
            near = torch.where(change <= tolerance, near + step, near).clamp_max(1)
            step = torch.where(near == 1, 0, step / 2)


class Proposals:
    """New candidates made from others, at random, drawn for each text by itself.

    The divergence is convex, so the farthest attention that keeps the output has nearly all rows
    on one key each. Steps along a gradient hardly ever change that key; these do.
    """

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
