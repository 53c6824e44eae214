"""Ablation: replace the output of attention by a constant, at some rows of some sites."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace

import torch
from torch import Tensor, nn

from attlas.models.asking.open_model import OpenModel
from attlas.models.facts.anatomy import anatomy
from attlas.models.facts.evaluation_mode import evaluation_mode
from attlas.models.tap.call import Call
from attlas.models.tap.eager_attention import mix
from attlas.models.tap.edits import Edit
from attlas.models.tap.opening import opened_by
from attlas.models.tap.tap import Tap
from attlas.shapes import HeadOutput, QueryMarks

Constants = Mapping[str, tuple[HeadOutput, QueryMarks]]  # by name of the site


def mixed_values(subject: OpenModel, call: Call) -> Tensor | None:
    """The output of each head, `[batch, query, head, width]`.

    None if it cannot be replaced: the family mixes its values in its own code, or they are unknown,
    as they are unless a pass is folded.
    """
    roads = {owner.path: owner.road for owner in anatomy(subject.model).owners}
    if call.values is None or roads[call.path] != "interface":
        return None
    return mix(call.weights, call.values)


@contextmanager
def ablating(subject: OpenModel, constants: Constants, edits: Sequence[Edit]) -> Iterator[None]:
    """Replace the output of the marked rows by constants, and apply the edits, within the block."""
    known = anatomy(subject.model)
    checked = [edit.check(subject.sites) for edit in edits]
    made = _AblatingTap(
        subject.model,
        known.owners,
        checked,
        wants=lambda site: site.name in constants,
        keep=lambda call: replace(call, weights=call.weights.new_empty(0), values=None),
    )
    made.constants = constants
    with evaluation_mode(subject.model), opened_by(made, known):
        yield


class _AblatingTap(Tap):
    constants: Constants

    def meet(
        self,
        module: nn.Module,
        weights: Tensor,
        values: Tensor,
        mask: Tensor | None,
        output: Tensor,
    ) -> tuple[Tensor, Tensor]:
        """Like a tap that only edits, but it also replaces outputs by constants."""
        output, used = super().meet(module, weights, values, mask, output)
        parts = self._parts(self._owners[id(module)], weights.shape[1])
        for part in parts:
            if part.site.name in self.constants:
                constant, rows = self.constants[part.site.name]
                new = constant.to(output)
                if len(parts) > 1:  # the other stream is in the same output, and stays
                    new = new + output - mix(part.of(used), part.among(values))
                output = torch.where(rows[:, :, None, None], new, output)
        return output, used
