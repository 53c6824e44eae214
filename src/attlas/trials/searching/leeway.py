"""Leeway: the weights of a site that a search may change, as distributions over their keys.

A row keeps its weight on the other keys. Its weight on the keys that may change, divided by their
sum, is a distribution, and distances are between such distributions.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import log

import torch
from torch import Tensor

from attlas.errors import UsageError
from attlas.mathematics.divergences import jensen_shannon
from attlas.models.asking.question import Question
from attlas.models.branching.upper_blocks import UpperBlocks
from attlas.models.tap.call import Call
from attlas.results import Site
from attlas.shapes import Attention, CopiedAttention, FreeMarks, FreeWeights, SiteWeights
from attlas.trials.support.outputs import with_whole_answers
from attlas.trials.support.scope import OpenSite, Scope

LEAST = 1e-30  # weight on free keys; a row with less takes no gradient
Shares = Sequence[SiteWeights]  # one for each leeway


@dataclass(frozen=True, eq=False)
class Leeway:
    """The rows of one site that may change, and their free keys; a row needs at least two."""

    site: Site
    whole: Attention  # all weights of the site, `[batch, head, query, key]`
    rows: Tensor  # the numbers of the rows that may change in any input
    free: FreeMarks  # which weights of those rows may, `[batch, head, row, key]`

    @property
    def mass(self) -> Tensor:
        """The weight on the free keys, `[batch, head, row, 1]`."""
        return (self.whole[:, :, self.rows].float() * self.free).sum(dim=-1, keepdim=True)

    @property
    def own(self) -> FreeWeights:
        """The model's own distribution over the free keys."""
        return self.shares_of(self.whole)

    @property
    def counted(self) -> Tensor:
        """Which rows have free keys, `[batch, head, row]`."""
        return self.free.any(dim=-1)

    def shares_of(self, weights: Attention) -> FreeWeights:
        """Weights of the whole site as distributions over the free keys.

        A row with next to no weight there takes no gradient: it would overflow.
        """
        taken = weights[..., self.rows, :].float() * self.free
        total = taken.sum(dim=-1, keepdim=True)
        steep = total < LEAST
        taken, total = (torch.where(steep, each.detach(), each) for each in (taken, total))
        return taken / torch.where(total > 0, total, 1)

    def softmax(self, logits: Tensor) -> FreeWeights:
        """Logits as distributions over the free keys; zero for rows without any."""
        held = logits.masked_fill(~self.free, -torch.inf)
        held = torch.where(self.counted[..., None], held, 0)
        return held.softmax(dim=-1) * self.free

    def rebuilt(self, shares: FreeWeights) -> CopiedAttention:
        """All weights of the site with these shares, `[copy × batch, head, query, key]`."""
        own = self.whole[:, :, self.rows].float()
        rows = torch.where(self.free, shares * self.mass, own).to(self.whole)
        whole = self.whole.expand(len(shares), *self.whole.shape)
        return whole.index_copy(-2, self.rows, rows).flatten(0, 1)

    def least(self, number: int) -> FreeWeights:
        """All of each row's weight on its `number`-th least attended free key, or the last one."""
        order = self.own.masked_fill(~self.free, torch.inf).argsort(dim=-1)
        most = (self.free.sum(dim=-1, keepdim=True) - 1).clamp_min(0)
        chosen = order.gather(-1, most.clamp_max(number))
        return torch.zeros_like(self.own).scatter_(-1, chosen, 1) * self.free


def find_leeways(opened: Sequence[OpenSite], clean: dict[Site, Call]) -> list[Leeway]:
    """What a search may change at each of these sites."""
    found = []
    for each in opened:
        weights = clean[each.site].weights.detach()
        free = each.entries(clean[each.site].visible).expand_as(weights)
        rows = each.rows.any(dim=0).nonzero()[:, 0]
        chosen = free[:, :, rows]
        movable = (chosen.sum(dim=-1) > 1) & ((weights[:, :, rows] * chosen).sum(dim=-1) > 0)
        found.append(Leeway(each.site, weights, rows, chosen & movable[..., None]))
    return found


def mean_of_rows(leeways: Sequence[Leeway], values: Sequence[Tensor]) -> Tensor:
    """The mean over sites, heads and counted rows, `[…, batch]`; NaN if there are none."""
    total = sum((v * g.counted).sum(dim=(-1, -2)) for g, v in zip(leeways, values, strict=True))
    count = sum(each.counted.sum(dim=(-1, -2)) for each in leeways)
    assert isinstance(total, Tensor) and isinstance(count, Tensor)
    return torch.where(count > 0, total / count.clamp_min(1), torch.nan)


def divergence(leeways: Sequence[Leeway], first: Shares, second: Shares) -> Tensor:
    """The distance of two attentions: the mean divergence of their rows, `[…, batch]`."""
    pairs = zip(first, second, strict=True)
    return mean_of_rows(leeways, [jensen_shannon(one, other) for one, other in pairs])


def largest_divergence(leeways: Sequence[Leeway]) -> Tensor:
    """The largest possible distance from the model's own: each row on its least attended key."""
    return divergence(leeways, [each.least(0) for each in leeways], [each.own for each in leeways])


def key_divergences(own: FreeWeights) -> Tensor:
    """The Jensen–Shannon divergence of all weight on one key from these rows, for each key."""
    lost = torch.xlogy(own, 2 * own / (1 + own))
    return ((1 - own) * log(2) + lost + (2 / (1 + own)).log()) / 2


def moved_mass(leeways: Sequence[Leeway]) -> Tensor:
    """The mean weight on free keys, as a share of the weight of a row."""
    return mean_of_rows(leeways, [each.mass[..., 0] for each in leeways])


def attention_of(leeways: Sequence[Leeway], shares: Shares) -> dict[Site, CopiedAttention]:
    """The whole attention of each site with these shares."""
    return {each.site: each.rebuilt(chosen) for each, chosen in zip(leeways, shares, strict=True)}


def answers_of(question: Question, logits: Tensor) -> Tensor:
    """The answers to all rows, `[copy, batch, pick, choice]`, from several copies of the output."""
    targets = with_whole_answers(question).targets
    alike: dict[object, list[int]] = {}
    for row, target in enumerate(targets):
        places = tuple(place for place, _ in target.picks)
        form = (target.link, target.picks if target.link == "sigmoid" else places)
        alike.setdefault(form, []).append(row)
    apart = logits.unflatten(0, (-1, len(question)))
    if len(alike) == 1:
        return targets[0].score(apart, "probability")
    order = torch.tensor([row for rows in alike.values() for row in rows], device=logits.device)
    parts = [targets[rows[0]].score(apart[:, rows], "probability") for rows in alike.values()]
    return torch.cat(parts, dim=1)[:, order.argsort()]


def frozen_above(top: UpperBlocks, leeways: Sequence[Leeway]) -> dict[Site, CopiedAttention]:
    """The model's own attention at the sites that are read but not searched, for every row."""
    searched = {each.site for each in leeways}
    return {
        site: top.repeated(call.weights) for site, call in top.clean.items() if site not in searched
    }


def read_sites(question: Question, scope: Scope) -> tuple[Site, ...]:
    """The sites of a scope; if it is frozen, also those above, whose attention stays fixed."""
    if scope.kind == "token" or (scope.kind == "layer" and scope.layer is None):
        raise UsageError(
            f"an adversary takes the scope readout, all, or layer with a number, not {scope.kind!r}"
        )
    sites = scope.sites(question.subject)
    if not scope.frozen or scope.kind == "all":
        return sites
    everywhere = question.subject.sites
    return everywhere[everywhere.index(sites[0]) :]
