"""Erase attention weights: which sets of tokens are erased, and what the model answers then.

An erased weight goes to the other weights of its row that may change, in proportion. What a scope
keeps fixed (special tokens, sinks, rows without a path to the readout) stays as it is.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from math import ceil

import numpy as np
import torch
from numpy.random import Generator
from numpy.typing import NDArray
from torch import Tensor

from attlas.errors import UsageError
from attlas.models.asking.memory import rows_of
from attlas.models.asking.question import Question
from attlas.models.asking.reading import attention_gradients
from attlas.models.branching.branches import Branch, run_branches
from attlas.models.branching.variants import Variants
from attlas.models.tap.edits import Edit
from attlas.results import Site
from attlas.shapes import (
    Attention,
    Hidden,
    TokenMarks,
    TokenScores,
    TokenVector,
    Visible,
    WayMarks,
    Ways,
    WayScores,
)
from attlas.trials.rewriting.rewritten_answers import frozen_attention
from attlas.trials.support.outputs import distributions, with_whole_answers
from attlas.trials.support.scope import Scope

ENTRIES_AT_ONCE = 2**24  # of rewritten attention in one pass
CHOICES_AT_ONCE = 2**24  # of answers in one pass: a vocabulary can be larger than the attention
ORDERS = ("attention", "gradient", "gradient × attention", "random order")
REMOVED = {order: f"removed by {order}" for order in ORDERS}
WEIGHT_REMOVED = {order: f"weight removed by {order}" for order in ORDERS}
LARGEST_DIVERGENCE, RANDOM_DIVERGENCE = "JSD of the largest", "JSD of a random one"
ALL_DIVERGENCE, DIVERGENCE_GAP, WEIGHT_GAP = (
    "JSD of all",
    "difference of JSD",
    "difference of weight",
)
LARGEST_TURNS, RANDOM_TURNS, ALL_TURN = "largest turns it", "random one turns it", "all turn it"
TURNABLE = "some set turns it"
NAMES = (
    *(LARGEST_DIVERGENCE, RANDOM_DIVERGENCE, ALL_DIVERGENCE, DIVERGENCE_GAP, WEIGHT_GAP),
    *(LARGEST_TURNS, RANDOM_TURNS, ALL_TURN, TURNABLE),
    *REMOVED.values(),
    *WEIGHT_REMOVED.values(),
)
NONE, LARGEST, OTHER, ALL, GROWING = range(5)  # the place of each set in those of a text


@dataclass(frozen=True, eq=False)
class TokenWeights:
    """The weight of each token: the mean over the sites, heads and rows of a scope.

    `gradient` is the sum of the gradients of the target's probability on the same weights, and
    `product` the sum of gradient × weight; `erasable` marks tokens whose weights may change.
    """

    weight: TokenScores
    gradient: TokenScores
    product: TokenScores
    erasable: Hidden


class Erasing:
    """A batch of texts whose attention weights are erased within a scope."""

    def __init__(self, question: Question, scope: Scope) -> None:
        if question.is_shared:
            raise UsageError("erasure takes one target for each text, and this text has several")
        self.question = question
        self.sites = scope.sites(question.subject)
        self._opened = {each.site.name: each for each in scope.open_sites(question)}
        self._keeps_own = scope.kind == "token"  # an erased token still sees itself
        self._in_turn = scope.kind in ("all", "token")
        self._scope = scope

    def weigh(self) -> TokenWeights:
        """The weight, gradient and product of each token."""
        with frozen_attention(self.question, self._scope):
            found = attention_gradients(self.question, "probability", sites=self.sites)
        weight, gradient, product, erasable = (self._blank() for _ in range(4))
        for call, slope in found:
            stream = self.question.inputs.queries_and_keys(call.site.kind)[1]
            opened = self._opened[call.site.name]
            others = self._others(call.site, call.weights.shape[-1])
            entries = opened.entries(call.visible) & others
            values, slopes = call.weights.double() * entries, slope.double() * entries
            rows = opened.rows.sum(dim=1).clamp_min(1) * call.site.heads
            here = (slice(None), slice(stream.start, stream.stop))
            weight[here] += values.sum(dim=(1, 2)) / rows[:, None] / len(found)
            gradient[here] += slopes.sum(dim=(1, 2))
            product[here] += (values * slopes).sum(dim=(1, 2))
            erasable[here] += entries.sum(dim=(1, 2))
        return TokenWeights(weight, gradient, product, erasable > 0)

    def _blank(self) -> Tensor:
        question = self.question
        shape = (len(question), len(question.inputs.tokens[0]))
        return torch.zeros(shape, dtype=torch.float64, device=question.subject.device)

    def answers(self, gone: Tensor) -> Iterator[Tensor]:
        """The answers without the weights of these tokens, some variants at a time.

        `gone` is `[variant, batch, token]`, and the answers are `[variant, batch, pick, choice]`.
        """
        length = gone.shape[2]
        heads = max(site.heads for site in self.sites)
        most = max(1, ENTRIES_AT_ONCE // (gone.shape[1] * heads * length**2))
        if self._in_turn:
            most = min(most, max(1, rows_of(gone.device, length) // gone.shape[1]))
        run = self._everywhere if self._in_turn else self._at_one_site
        first = run(gone[:1])
        yield first
        most = max(1, min(most, CHOICES_AT_ONCE // first.numel()))
        yield from (run(gone[start : start + most]) for start in range(1, len(gone), most))

    def _at_one_site(self, gone: Tensor) -> Tensor:
        def change(
            site: Site, weights: Attention, visible: Visible, numbers: Sequence[int]
        ) -> Tensor:
            return erase(
                weights,
                self._opened[site.name].entries(visible),
                self._closed(site, gone)[list(numbers)],
            )

        (site,) = self.sites
        branch = Branch(site, Variants("erased", len(gone), change))
        with frozen_attention(self.question, self._scope):
            (found,) = run_branches(with_whole_answers(self.question), [branch], "probability")
        return found.scores

    def _everywhere(self, gone: Tensor) -> Tensor:
        count, batch = gone.shape[:2]

        def change(site: Site, weights: Attention, visible: Visible) -> Attention:
            apart = weights.unflatten(0, (count, batch))
            entries = self._opened[site.name].entries(visible[:batch])
            return erase(apart, entries, self._closed(site, gone)).flatten(0, 1)

        edits = [
            Edit("erase", partial(change, site), kind=site.kind, layer=site.layer)
            for site in self.sites
        ]
        copies = self.question.rows(list(range(batch)) * count)
        with frozen_attention(self.question, self._scope), copies.subject.tap(edits, sites=()):
            found: Tensor = distributions(copies).unflatten(0, (count, batch))
        return found

    def _closed(self, site: Site, gone: Tensor) -> Tensor:
        """The erased entries of a site, `[variant, batch, 1, 1 or query, key]`."""
        stream = self.question.inputs.queries_and_keys(site.kind)[1]
        keys = gone[..., stream.start : stream.stop]
        return keys[:, :, None, None, :] & self._others(site, keys.shape[-1])

    def _others(self, site: Site, length: int) -> Tensor:
        """The entries that may be erased: all, or all but the weight of a token on itself."""
        marks = torch.ones(1, length, dtype=torch.bool, device=self.question.subject.device)
        if self._keeps_own and site.kind != "cross":
            return ~torch.eye(length, dtype=torch.bool, device=marks.device)
        return marks


def erase(weights: Tensor, entries: Visible, gone: Tensor) -> Tensor:
    """The weights without those on the keys that are gone, `[variant, batch, head, query, key]`.

    The other `entries` of a row share the erased weight in proportion; if there are none, it is
    lost. `gone` is `[variant, batch, 1, 1 or query, key]`; the weights may be given for each
    variant or once for all.
    """
    wide = weights if weights.dtype == torch.float64 else weights.float()
    free = wide * entries
    left = free * ~gone
    rest = left.sum(dim=-1, keepdim=True)
    # Divide before multiplying: the rest can be tiny.
    grown = left / rest.where(rest > 0, 1.0) * free.sum(dim=-1, keepdim=True)
    return torch.where(entries, grown, wide).to(weights)


@dataclass(frozen=True, eq=False)
class ErasurePlan:
    """The sets of weights of one text that are erased."""

    weight: TokenVector
    orders: Sequence[NDArray[np.intp]]  # erasable tokens: by three scores, then in random orders
    other: int | None  # a random token to compare the largest with, if there is one

    @classmethod
    def of(
        cls, erasable: TokenMarks, scores: Sequence[TokenVector], random: Generator, draws: int
    ) -> "ErasurePlan":
        """Order the tokens by attention, gradient and gradient × attention, highest first.

        Ties are broken at random, and the other token is drawn.
        """
        tokens = np.flatnonzero(erasable)
        ordered = [
            tokens[np.lexsort((random.permutation(len(tokens)), -each[tokens]))] for each in scores
        ]
        other = int(random.choice(ordered[0][1:])) if len(tokens) > 1 else None
        drawn = [random.permutation(tokens) for _ in range(draws)]
        return cls(scores[0], [*ordered, *drawn], other)

    def __len__(self) -> int:
        return len(self.orders[0])

    def sizes(self, steps: int) -> list[int]:
        """How many tokens are erased at each step; at the last step, all."""
        return [ceil(step * len(self) / steps) for step in range(1, steps + 1)]

    def sets(self, steps: int) -> Ways:
        """None, the largest, the other, all; then, at each step, the first of each order."""
        tokens = len(self.weight)
        fixed: list[Sequence[int] | NDArray[np.intp]] = [
            [],
            self.orders[0][:1],
            [] if self.other is None else [self.other],
            self.orders[0],
        ]
        growing = [order[:size] for size in self.sizes(steps) for order in self.orders]
        gone = np.zeros((GROWING + len(growing), tokens), dtype=bool)
        for row, chosen in enumerate([*fixed, *growing]):
            gone[row, chosen] = True
        return gone

    def figures(self, divergence: WayScores, turned: WayMarks, steps: int) -> Mapping[str, float]:
        """The figures of the text, from the effect of each set."""
        found = dict.fromkeys(NAMES, np.nan)
        if len(self):
            found |= {ALL_DIVERGENCE: divergence[ALL], ALL_TURN: turned[ALL]}
            found |= self._removed(turned[GROWING:].reshape(steps, len(self.orders)), steps)
        if self.other is not None:
            largest = self.weight[self.orders[0][0]]
            found |= {
                LARGEST_DIVERGENCE: divergence[LARGEST],
                RANDOM_DIVERGENCE: divergence[OTHER],
                DIVERGENCE_GAP: divergence[LARGEST] - divergence[OTHER],
                WEIGHT_GAP: largest - self.weight[self.other],
                LARGEST_TURNS: turned[LARGEST],
                RANDOM_TURNS: turned[OTHER],
            }
        return {name: float(value) for name, value in found.items()}

    def _removed(self, turned: NDArray[np.bool_], steps: int) -> Mapping[str, float]:
        """For each order, the share of tokens erased before the decision flipped, and their weight.

        The share is 1 if no set flipped it. `turned` is `[step, order]`.
        """
        sizes, total = self.sizes(steps), self.weight[self.orders[0]].sum()
        gone = [sizes[each.argmax()] if each.any() else len(self) for each in turned.T]
        pairs = zip(self.orders, gone, strict=True)
        weighs = [self.weight[order[:count]].sum() / (total or np.nan) for order, count in pairs]
        found = {TURNABLE: float(turned.any())}
        for names, values in ((REMOVED, np.array(gone) / len(self)), (WEIGHT_REMOVED, weighs)):
            last = len(ORDERS) - 1
            each = [*values[:last], np.mean(values[last:])]
            found |= dict(zip(names.values(), each, strict=True))
        return found
