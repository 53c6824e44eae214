"""One call to an attention, which a tap computes in the place of its model."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from torch import Tensor, nn

from attlas.models.tap.call import SiteKeys, find_visible, join
from attlas.models.tap.eager_attention import check_mixing, mix, run_eager
from attlas.models.tap.edits import Edit
from attlas.models.tap.fused import is_proven, prove, run_fused


@dataclass(frozen=True, eq=False)
class AttentionCall:
    """One attention call: its sites, its arguments, and the edits of the outer taps."""

    module: nn.Module
    parts: Sequence[SiteKeys]
    streams: tuple[Tensor, Tensor, Tensor]  # query, key and value
    mask: Tensor | None
    given: Mapping[str, Any]
    edits: Sequence[Edit]

    def rows(self, rows: slice) -> "AttentionCall":
        """The call for some of its rows."""
        total = self.streams[0].shape[0]
        query, key, value = (stream[rows] for stream in self.streams)
        given = {name: _take(each, rows, total) for name, each in self.given.items()}
        mask = _take(self.mask, rows, total)
        return replace(self, streams=(query, key, value), mask=mask, given=given)

    def output(self) -> Tensor:
        """The output of the attention, computed by fused attention if possible."""
        if self.edits:
            return self.spelled_out()[1]
        fused = run_fused(self.module, self.streams, self.mask, self.given)
        if fused is not None and is_proven(self.module):
            return fused
        output, _ = run_eager(self.module, *self.streams, self.mask, **self.given)
        if fused is not None:
            prove(self.module, fused, output)
        return output

    def spelled_out(self) -> tuple[Tensor, Tensor]:
        """The weights after the edits, and the values mixed by them."""
        output, weights = run_eager(self.module, *self.streams, self.mask, **self.given)
        check_mixing(self.module, weights, self.streams[2], output)
        if not self.edits:
            return weights, output
        weights = join([self._edited(part, part.of(weights)) for part in self.parts])
        return weights, mix(weights, self.streams[2])

    def visible(self, part: SiteKeys, weights: Tensor) -> Tensor:
        """Which keys of a site each query may see."""
        return find_visible(None if self.mask is None else part.of(self.mask), weights)

    def _edited(self, part: SiteKeys, weights: Tensor) -> Tensor:
        for edit in self.edits:
            if edit.touches(part.site):
                weights = edit.rewrite(part.site, weights, self.visible(part, weights))
        return weights


def _take(value: Any, rows: slice, total: int) -> Any:
    """These rows of a tensor with a batch axis; anything else unchanged."""
    if isinstance(value, Tensor) and value.ndim == 4 and value.shape[0] == total:
        return value[rows]
    return value
