"""The tap of a branched pass: it rewrites the attention of the rows that start at each site."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from attlas.errors import UnsupportedModelError
from attlas.models.branching.attention_call import AttentionCall
from attlas.models.branching.variants import Variants
from attlas.models.facts.sites import Owner
from attlas.models.tap.call import SiteKeys, join
from attlas.models.tap.eager_attention import mix
from attlas.models.tap.tap import Tap, split_heads
from attlas.results import Site


@dataclass(frozen=True)
class VariantGroup:
    """Variants of one branch that run together, by number, and the block call they start in."""

    branch: int
    site: Site
    variants: Variants
    numbers: tuple[int, ...]
    depth: int


class BranchTap(Tap):
    """A tap on a pass whose batch grows: first the inputs, then the rows of each group."""

    def __init__(
        self,
        model: nn.Module,
        owners: Sequence[Owner],
        groups: Sequence[VariantGroup],
        count: int,
        gradients: bool,
    ) -> None:
        super().__init__(model, owners, gradients=gradients)
        self.count = count
        self.leaves: list[Tensor] = []
        self.clean: list[Tensor] = []  # the unchanged attention that each leaf was made of
        self._starts: dict[str, list[tuple[int, VariantGroup]]] = {}
        start = count
        for group in groups:
            self._starts.setdefault(group.site.name, []).append((start, group))
            start += count * len(group.numbers)

    def take_over(
        self,
        module: nn.Module,
        streams: tuple[Tensor, Tensor, Tensor],
        mask: Tensor | None,
        given: Mapping[str, Any],
        outer: Sequence[Tap],
    ) -> Tensor:
        """The attention output of all rows; only those that start at this site are rewritten."""
        owner = self._owners[id(module)]
        self._unmet[owner.path] -= 1
        heads = streams[0].shape[1]
        parts = self._parts(owner, heads)
        edits = [edit for each in outer for edit in each.hand_down(module, heads)]
        called = AttentionCall(module, parts, streams, mask, given, edits)
        started = self._started(parts)
        whole = called.output()
        if not started:
            return whole
        lay: Callable[..., Tensor] = _Laid.apply
        return lay(whole, torch.cat(self._rewritten(called)), started[0][0])

    def _started(self, parts: Sequence[SiteKeys]) -> list[tuple[int, VariantGroup]]:
        """The groups that start at these sites, each with its first row, in the order of rows."""
        found = [each for part in parts for each in self._starts.get(part.site.name, [])]
        return sorted(found, key=lambda each: each[0])

    def _rewritten(self, called: AttentionCall) -> list[Tensor]:
        """The outputs of the rows that start here, from the unchanged attention of their inputs."""
        clean = called.rows(slice(0, self.count))
        with torch.no_grad():
            weights, _ = clean.spelled_out()
        values = clean.streams[2].detach()
        outputs = []
        for _, group in self._started(called.parts):
            copies = len(group.numbers)
            used = [
                self._variants(part.site, own, clean.visible(part, own), group)
                if part.site.name == group.site.name
                else own.repeat(copies, 1, 1, 1)
                for part, own in ((part, part.of(weights)) for part in called.parts)
            ]
            outputs.append(mix(join(used), values.repeat(copies, 1, 1, 1)))
        return outputs

    def _variants(
        self, site: Site, weights: Tensor, visible: Tensor, group: VariantGroup
    ) -> Tensor:
        """The rewritten attention of a group, `[variant × batch, head, query, key]`."""
        with torch.no_grad():
            used = group.variants.change(site, weights, visible, group.numbers).to(weights.dtype)
        expected = (len(group.numbers), *weights.shape)
        if used.shape != expected:
            raise UnsupportedModelError(
                f"the variants {group.variants.name!r} gave {tuple(used.shape)}, not {expected}"
            )
        used = used.flatten(0, 1)
        if self.gradients:
            used = used.detach().requires_grad_()
            self.leaves.append(used)
            self.clean.append(weights)
        return used

    def meet_softmax(self, weights: Tensor, visible: Tensor) -> Tensor:
        """On the second road: rewrite the softmax of the rows that start here."""
        owner = self._inside[-1]
        self._unmet[owner.path] -= 1
        if self._unmet[owner.path] < 0:
            raise UnsupportedModelError(f"{type(owner.module).__name__} computes several softmaxes")
        per_head = split_heads(owner, weights)
        (site,) = (part.site for part in self._parts(owner, per_head.shape[1]))
        started = self._starts.get(site.name, [])
        if not started:
            return weights
        clean = per_head[: self.count].detach().clone()  # a part would keep the whole
        seen = visible.reshape(per_head.shape)[: self.count]
        new = [self._variants(site, clean, seen, group) for _, group in started]
        first, size = started[0][0], sum(len(each) for each in new)
        return torch.cat([per_head[:first], *new, per_head[first + size :]]).reshape(weights.shape)


class _Laid(torch.autograd.Function):
    """Some rows laid over others from a place on, without a copy of any gradient.

    The rows underneath get the gradient of those above them, which nobody reads: they start here,
    so nothing below depends on them.
    """

    @staticmethod
    def forward(ctx: Any, whole: Tensor, own: Tensor, first: int) -> Tensor:
        """The rows of the whole, with these in their place."""
        last = first + len(own)
        ctx.rows = slice(first, last)
        return torch.cat([whole[:first], own, whole[last:]])

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, Tensor, None]:
        """The gradient on the whole and on the rows above."""
        return gradient, gradient[ctx.rows], None
