"""Erasing attention weights: some keys get none, and what they had goes to the others in their row.

What a scope holds (special tokens, sinks, rows without a path to the readout) stays as it is: the
weights that may change keep their sum, row by row.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor

from attlas.errors import UsageError
from attlas.models.asking.memory import rows_of
from attlas.models.asking.question import Question
from attlas.models.asking.reading import attention_gradients
from attlas.models.branching.branches import Branch, run_branches
from attlas.models.branching.variants import Variants
from attlas.models.tap.edits import Edit
from attlas.results import Site
from attlas.shapes import Attention, Hidden, TokenScores, Visible
from attlas.trials.rewriting.rewritten_answers import holding_clean
from attlas.trials.support.outputs import answering, distributions
from attlas.trials.support.scope import Scope

ENTRIES_AT_ONCE = 2**24  # of rewritten attention
CHOICES_AT_ONCE = 2**24  # of answers: a vocabulary may be larger than the attention


@dataclass(frozen=True, eq=False)
class Weighed:
    """The weights of a scope by token: their mean over its sites, heads and rows.

    `gradient` is the sum over the same of the gradient of the target's probability on them, and
    `product` that of gradient × weight; `erasable` are the tokens whose weights may change.
    """

    weight: TokenScores
    gradient: TokenScores
    product: TokenScores
    erasable: Hidden


class Erasing:
    """A batch of texts whose attention weights are erased at a scope."""

    def __init__(self, question: Question, scope: Scope) -> None:
        if question.is_shared:
            raise UsageError("a text has several targets: ask about one of them")
        self.question = question
        self.sites = scope.sites(question.subject)
        self._opened = {each.site.name: each for each in scope.opened(question)}
        self._keeps_own = scope.kind == "token"  # a knocked-out token still sees itself
        self._in_turn = scope.kind in ("all", "token")
        self._scope = scope

    def weigh(self) -> Weighed:
        """What the weights come to, of each token."""
        with holding_clean(self.question, self._scope):
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
        return Weighed(weight, gradient, product, erasable > 0)

    def _blank(self) -> Tensor:
        question = self.question
        shape = (len(question), len(question.inputs.tokens[0]))
        return torch.zeros(shape, dtype=torch.float64, device=question.subject.device)

    def answers(self, gone: Tensor) -> Iterator[Tensor]:
        """The answers without these tokens' weights, `[variant, batch, pick, choice]`, in parts.

        `gone` is `[variant, batch, token]`.
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
        with holding_clean(self.question, self._scope):
            (found,) = run_branches(answering(self.question), [branch], "probability")
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
        with holding_clean(self.question, self._scope), copies.subject.tap(edits, sites=()):
            found: Tensor = distributions(copies).unflatten(0, (count, batch))
        return found

    def _closed(self, site: Site, gone: Tensor) -> Tensor:
        """The weights of a site that are gone, `[variant, batch, 1, 1 or query, key]`."""
        stream = self.question.inputs.queries_and_keys(site.kind)[1]
        keys = gone[..., stream.start : stream.stop]
        return keys[:, :, None, None, :] & self._others(site, keys.shape[-1])

    def _others(self, site: Site, length: int) -> Tensor:
        """The entries that are a token's weight on another, where its own are not to be erased."""
        marks = torch.ones(1, length, dtype=torch.bool, device=self.question.subject.device)
        if self._keeps_own and site.kind != "cross":
            return ~torch.eye(length, dtype=torch.bool, device=marks.device)
        return marks


def erase(weights: Tensor, entries: Visible, gone: Tensor) -> Tensor:
    """The weights with nothing on the keys that are gone, `[variant, batch, head, query, key]`.

    The other `entries` of a row share what these had, in proportion; where none is left, it is
    lost. `gone` is `[variant, batch, 1, 1 or query, key]`; the weights may be of each variant, or
    of all.
    """
    wide = weights if weights.dtype == torch.float64 else weights.float()
    free = wide * entries
    left = free * ~gone
    rest = left.sum(dim=-1, keepdim=True)
    # Shares first: the rest may be too small to divide by.
    grown = left / rest.where(rest > 0, 1.0) * free.sum(dim=-1, keepdim=True)
    return torch.where(entries, grown, wide).to(weights)
