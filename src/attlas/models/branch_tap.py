"""The tap of a branched pass: at each site, rewrite the attention of the rows that start there."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from attlas.errors import UnsupportedModelError
from attlas.models.fused import is_proven, prove, run_fused
from attlas.models.sites import Owner
from attlas.models.tap import Tap, apart, check_mixing, find_visible, mix, run_eager
from attlas.models.variants import Variants
from attlas.results import Site


@dataclass(frozen=True)
class Piece:
    """Some of the variants of a branch, by their numbers, and the block call they start in."""

    branch: int
    site: Site
    variants: Variants
    numbers: tuple[int, ...]
    depth: int


class BranchTap(Tap):
    """A tap on a pass whose batch grows: the inputs first, then the rows of each piece in turn."""

    def __init__(
        self,
        model: nn.Module,
        owners: Sequence[Owner],
        pieces: Sequence[Piece],
        count: int,
        gradients: bool,
    ) -> None:
        super().__init__(model, owners, gradients=gradients)
        self.count = count
        self.leaves: list[Tensor] = []
        self._starts: dict[str, list[tuple[int, Piece]]] = {}
        start = count
        for piece in pieces:
            self._starts.setdefault(piece.site.name, []).append((start, piece))
            start += count * len(piece.numbers)

    def take_over(
        self,
        module: nn.Module,
        streams: tuple[Tensor, Tensor, Tensor],
        mask: Tensor | None,
        given: Mapping[str, Any],
    ) -> Tensor:
        """The attention output of all rows: fused, but for those that start at this site."""
        owner = self._owners[id(module)]
        self._unmet[owner.path] -= 1
        site = self._site(owner, streams[0].shape[1])
        started = self._starts.get(site.name, [])
        if not started:
            return self._plain(module, streams, mask, given, slice(None))
        first = started[0][0]
        last = started[-1][0] + self.count * len(started[-1][1].numbers)
        parts = [self._plain(module, streams, mask, given, slice(0, first))]
        parts += self._rewritten(module, site, streams, mask, given)
        if last < streams[0].shape[0]:
            parts.append(self._plain(module, streams, mask, given, slice(last, None)))
        return torch.cat(parts)

    def _plain(
        self, module: nn.Module, streams: Any, mask: Any, given: Mapping[str, Any], rows: slice
    ) -> Tensor:
        total = streams[0].shape[0]
        q, k, v = (stream[rows] for stream in streams)
        own = {name: _take(value, rows, total) for name, value in given.items()}
        seen = _take(mask, rows, total)
        fused = run_fused(module, (q, k, v), seen, own)
        if fused is not None and is_proven(module):
            return fused
        output, _ = run_eager(module, q, k, v, seen, **own)
        if fused is not None:
            prove(module, fused, output)
        return output

    def _rewritten(
        self, module: nn.Module, site: Site, streams: Any, mask: Any, given: Mapping[str, Any]
    ) -> list[Tensor]:
        """The outputs of the rows that start here, from the clean attention of their inputs."""
        total, clean = streams[0].shape[0], slice(0, self.count)
        q, k, v = (stream[clean].detach() for stream in streams)
        own = {name: _take(value, clean, total) for name, value in given.items()}
        seen = _take(mask, clean, total)
        with torch.no_grad():
            output, weights = run_eager(module, q, k, v, seen, **own)
            check_mixing(module, weights, v, output)
        outputs = []
        for _, piece in self._starts[site.name]:
            used = self._variants(site, weights, find_visible(seen, weights), piece)
            values = v.repeat(len(piece.numbers), 1, 1, 1)
            outputs.append(mix(used, values))
        return outputs

    def _variants(self, site: Site, weights: Tensor, visible: Tensor, piece: Piece) -> Tensor:
        """The rewritten attention of a piece, `[variant × batch, head, query, key]`."""
        with torch.no_grad():
            used = piece.variants.change(site, weights, visible, piece.numbers).to(weights.dtype)
        expected = (len(piece.numbers), *weights.shape)
        if used.shape != expected:
            raise UnsupportedModelError(
                f"the variants {piece.variants.name!r} gave {tuple(used.shape)}, not {expected}"
            )
        used = used.flatten(0, 1)
        if self.gradients:
            used = used.detach().requires_grad_()
            self.leaves.append(used)
        return used

    def meet_softmax(self, weights: Tensor, visible: Tensor) -> Tensor:
        """On the second road: the softmax of all rows, with those that start here rewritten."""
        owner = self._inside[-1]
        self._unmet[owner.path] -= 1
        if self._unmet[owner.path] < 0:
            raise UnsupportedModelError(f"{type(owner.module).__name__} takes several softmaxes")
        per_head = apart(owner, weights)
        site = self._site(owner, per_head.shape[1])
        started = self._starts.get(site.name, [])
        if not started:
            return weights
        clean = per_head[: self.count].detach()
        seen = visible.reshape(per_head.shape)[: self.count]
        new = [self._variants(site, clean, seen, piece) for _, piece in started]
        first, size = started[0][0], sum(len(each) for each in new)
        return torch.cat([per_head[:first], *new, per_head[first + size :]]).reshape(weights.shape)


def _take(value: Any, rows: slice, total: int) -> Any:
    """Some rows of what goes by rows; all else as it is."""
    if isinstance(value, Tensor) and value.ndim == 4 and value.shape[0] == total:
        return value[rows]
    return value
