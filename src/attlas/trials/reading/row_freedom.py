"""How free rows of attention weights are while their output stays the same."""

import torch
from torch import Tensor

from attlas.mathematics.effective_weights import effective_weights
from attlas.mathematics.identifying import nullities, query_ranks
from attlas.methods.effective_attention import head_values
from attlas.models.asking.question import Question
from attlas.models.tap.call import Call
from attlas.trials.support.scope import OpenSite
from attlas.trials.support.token_kinds import TOKEN_KINDS, mark_kinds

AT_ONCE = 2**22  # entries of values that are copied at once, for rows that see different keys
DETERMINED, DETERMINED_BY_QUERY = "determined by the output", "determined through the query"
KEPT, CORRELATION = "free dimensions, sum kept", "raw with effective"


class RowFreedom:
    """The rows of one attention that are in the scope, for a batch of texts."""

    def __init__(self, question: Question, call: Call, opened: OpenSite) -> None:
        chosen = opened.rows.any(dim=0).nonzero()[:, 0]
        self.counted = opened.rows[:, chosen]  # `[batch, row]`
        self.weights = call.weights[:, :, chosen]
        self.visible = call.visible.expand_as(call.weights)[:, :, chosen]
        self.values = head_values(call)
        self.count = self.visible[:, 0].sum(dim=-1)
        keys = question.inputs.queries_and_keys(call.site.kind)[1]
        self.kinds = mark_kinds(question.inputs.tokens, keys.start, keys.stop).to(
            self.weights.device
        )

    def figures(self, keys: Tensor | None) -> dict[str, Tensor]:
        """Means over heads and counted rows, `[batch]`, by name."""
        rank, free, kept = self._nullities()
        raw, effective = (
            self.weights.double(),
            effective_weights(self.weights, self.values, self.visible),
        )
        unique = torch.full_like(raw[..., 0], torch.nan) if keys is None else self._by_query(keys)
        figures = {
            "keys": self.visible.sum(dim=-1),
            "rank": rank,
            "free dimensions": free,
            KEPT: kept,
            DETERMINED: kept == 0,
            DETERMINED_BY_QUERY: unique,
            CORRELATION: correlations(raw, effective, self.visible),
        }
        for name, weights in (("raw", raw), ("effective", effective)):
            masses = shares_by_kind(weights, self.kinds)
            for number, kind in enumerate(TOKEN_KINDS):
                figures[f"{name} weight on {kind}"] = masses[..., number]
        return {name: self._mean(each.double()) for name, each in figures.items()}

    def _mean(self, values: Tensor) -> Tensor:
        counted = self.counted[:, None].expand_as(values)
        return values.masked_fill(~counted, torch.nan).flatten(1).nanmean(dim=1)

    def _nullities(self) -> list[Tensor]:
        """The rank and free dimensions of each row; computed once if all rows see the same keys."""
        values = self.values[:, :, None]
        if bool((self.visible == self.visible[:, :, :1]).all()):
            seen = self.visible[:, :, :1, None]
            same = nullities(values, seen)
            return [each.expand(*self.weights.shape[:3]) for each in same]
        step = max(1, AT_ONCE // values.numel())
        chunks = [
            nullities(values, seen[:, :, :, None]) for seen in self.visible.split(step, dim=2)
        ]
        return [torch.cat(each, dim=2) for each in zip(*chunks, strict=True)]

    def _by_query(self, keys: Tensor) -> Tensor:
        """Whether every small change of the query that changes the weights changes the output."""
        step = max(1, AT_ONCE // self.values.numel())
        rows = zip(self.weights.split(step, dim=2), self.visible.split(step, dim=2), strict=True)
        chunks = [
            query_ranks(
                row[..., None, :], self.values[:, :, None], keys[:, :, None], seen[..., None, :]
            )
            for row, seen in rows
        ]
        return torch.cat([moved == free for moved, free in chunks], dim=2).double()


def correlations(first: Tensor, second: Tensor, visible: Tensor) -> Tensor:
    """Pearson's correlation of rows over the keys that they see; NaN if a row is constant."""
    count = visible.sum(dim=-1, keepdim=True).clamp_min(1)
    one, two = (
        (each - each.sum(dim=-1, keepdim=True) / count).masked_fill(~visible, 0)
        for each in (first, second)
    )
    product: Tensor = (one * two).sum(dim=-1)
    found: Tensor = product / (one.norm(dim=-1) * two.norm(dim=-1))
    return found


def shares_by_kind(weights: Tensor, kinds: Tensor) -> Tensor:
    """The share of the absolute weights `[batch, …, key]` on each kind `[batch, key, kind]`."""
    sizes = weights.abs()
    by_kind = torch.einsum("bhqk,bkc->bhqc", sizes, kinds)
    shares: Tensor = by_kind / sizes.sum(dim=-1, keepdim=True)
    return shares
