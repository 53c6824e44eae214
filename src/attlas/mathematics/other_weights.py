"""Other weights over states that stay fixed: permuted, erased, or as far away as possible.

A text is a row of weights over its tokens, padded, with marks of the tokens that are `free` to have
weight; all others have none. `Answer` mixes the fixed states by such weights, for many copies of
all texts at once, and gives the model's distribution over its choices.
"""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Generator, Tensor

from attlas.mathematics.divergences import jensen_shannon, total_variation
from attlas.shapes import (
    CopiedAnswers,
    CopiedMarks,
    CopiedRows,
    CopyValues,
    OrderRows,
    PaddedMarks,
    PaddedRows,
)

Answer = Callable[[CopiedRows], CopiedAnswers]
ENTRIES_AT_ONCE = 2**24  # weights of copies in one call


def permuted(weights: PaddedRows, free: PaddedMarks, copies: int, random: Generator) -> CopiedRows:
    """The weights of each text on its free tokens in random orders."""
    drawn = torch.rand((copies, *weights.shape), generator=random, device=random.device)
    places = drawn.to(weights.device).masked_fill(~free, 2.0).argsort(dim=-1)
    freest = (~free).long().argsort(dim=-1, stable=True)
    values = weights.gather(-1, freest).expand(copies, -1, -1)
    return torch.zeros_like(values).scatter(-1, places, values)


def erased(weights: CopiedRows, gone: CopiedMarks) -> CopiedRows:
    """The weights without those that are gone; the others grow in proportion to sum to one.

    If all are gone, none grows: the mixture is zero.
    """
    left = weights * ~gone
    total = left.sum(dim=-1, keepdim=True)
    return left / torch.where(total > 0, total, 1.0)


def ranks(scores: OrderRows, free: PaddedMarks, random: Generator) -> Tensor:
    """The rank of each token from the highest score, 0; ties in random order, tokens not free last.

    `[order, text, token]`.
    """
    shuffled = torch.rand(scores.shape, generator=random, device=random.device).to(scores.device)
    held = scores.masked_fill(~free, -torch.inf)
    mixed = shuffled.argsort(dim=-1)
    order = mixed.gather(-1, held.gather(-1, mixed).argsort(dim=-1, descending=True, stable=True))
    return order.argsort(dim=-1)


@dataclass(frozen=True, eq=False)
class FirstFlips:
    """How many weights go before the decision flips, `[order, text]`; all where it never does."""

    removed: Tensor
    flips: Tensor  # whether any number of weights flips it

    def shares(self, free: PaddedMarks) -> Tensor:
        """The removed weights as a share of all that could be, 1 where the decision never flips."""
        return self.removed / free.sum(dim=-1)


def first_flips(weights: PaddedRows, free: PaddedMarks, rank: Tensor, answer: Answer) -> FirstFlips:
    """Erase the weights of each text in the order of `rank`, `[order, text, token]`, one by one."""
    orders, texts, tokens = rank.shape
    size = free.sum(dim=-1)
    clean = answer(weights[None])[0].argmax(dim=-1)
    found = size.expand(orders, -1).clone()
    flips = torch.zeros_like(found, dtype=torch.bool)
    at_once = max(1, ENTRIES_AT_ONCE // (orders * texts * tokens))
    for start in range(1, tokens + 1, at_once):
        counts = torch.arange(start, min(start + at_once, tokens + 1), device=rank.device)
        gone = rank[:, None] < counts[None, :, None, None]
        copies = erased(weights.expand(gone.numel() // weights.numel(), -1, -1), gone.flatten(0, 1))
        turned = (answer(copies).argmax(dim=-1) != clean).unflatten(0, (orders, len(counts)))
        turned &= counts[:, None] <= size
        first = start + turned.int().argmax(dim=1)
        found = torch.where(turned.any(dim=1) & ~flips, first, found)
        flips |= turned.any(dim=1)
    return FirstFlips(found, flips)


@dataclass(frozen=True, eq=False)
class Candidates:
    """Other weights for each text, how far they are, and how far they move the answer."""

    weights: CopiedRows
    distance: CopyValues  # Jensen–Shannon divergence from the model's own
    change: CopyValues  # total variation of the answer

    def farthest(self, tolerance: float) -> Tensor:
        """ε-max: the largest distance of a candidate within the tolerance; 0 if there is none."""
        return self._within(tolerance).amax(dim=0).clamp_min(0.0)

    def chosen(self, tolerance: float, own: PaddedRows) -> PaddedRows:
        """The weights of the farthest candidate within the tolerance; the model's own if none."""
        within = self._within(tolerance)
        best = within.argmax(dim=0)
        rows = torch.arange(len(own), device=own.device)
        return torch.where((within.amax(dim=0) >= 0)[:, None], self.weights[best, rows], own)

    def _within(self, tolerance: float) -> Tensor:
        return self.distance.masked_fill(self.change > tolerance, -1.0)


@dataclass(frozen=True)
class AdversaryPlan:
    """How other weights are searched for; the defaults are those of Jain and Wallace's code."""

    tolerance: float = 0.01
    candidates: int = 5
    steps: int = 500
    rate: float = 0.01
    penalty: float = 500.0
    noise: float = 3.0  # of the first logits


def far_candidates(
    weights: PaddedRows, free: PaddedMarks, answer: Answer, plan: AdversaryPlan, random: Generator
) -> Candidates:
    """Move candidates away from the model's weights and from each other, within the tolerance.

    Maximise for each text the sum of divergences from its own weights, plus 1/(k(k − 1)) of those
    of every two candidates, minus a penalty where the answer moves by more than the tolerance.
    """
    shape = (plan.candidates, *weights.shape)
    drawn = torch.randn(shape, generator=random, device=random.device).to(weights)
    logits = (plan.noise * drawn).requires_grad_()
    clean = answer(weights[None]).detach()
    adam = torch.optim.Adam([logits], lr=plan.rate, amsgrad=True)
    for _ in range(plan.steps):
        found = _measured(logits, weights, free, answer, clean)
        lost = plan.penalty * (found.change - plan.tolerance).clamp_min(0.0)
        loss = (lost - found.distance).sum() - _apart(found.weights)
        adam.zero_grad()
        (logits.grad,) = torch.autograd.grad(loss, [logits])
        adam.step()
    with torch.no_grad():
        return _measured(logits, weights, free, answer, clean)


def _measured(
    logits: Tensor, weights: PaddedRows, free: PaddedMarks, answer: Answer, clean: CopiedAnswers
) -> Candidates:
    # A row without free tokens is padding: it keeps no weight.
    held = torch.where(free.any(dim=-1)[:, None], logits.masked_fill(~free, -torch.inf), 0.0)
    shares = held.softmax(dim=-1) * free
    distance = jensen_shannon(shares, weights.expand_as(shares))
    answers = answer(shares)
    return Candidates(shares, distance, total_variation(answers, clean.expand_as(answers)))


def _apart(candidates: CopiedRows) -> Tensor:
    """The divergences of every two candidates, by 1/(k(k − 1)), over all texts."""
    count = len(candidates)
    if count < 2:
        return candidates.new_zeros(())
    first, second = torch.triu_indices(count, count, 1, device=candidates.device)
    return jensen_shannon(candidates[first], candidates[second]).sum() / (count * (count - 1))
