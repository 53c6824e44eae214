"""Keys: what attention compares the queries with, as the softmax gets to see it."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor, nn

from attlas.models.asking.question import Question
from attlas.models.asking.scores import run_logits
from attlas.models.facts.anatomy import anatomy
from attlas.models.facts.evaluation_mode import evaluation_mode
from attlas.models.facts.sites import Owner
from attlas.models.tap.call import Call
from attlas.models.tap.opening import opened_by
from attlas.models.tap.tap import Tap
from attlas.results import Site

CAPS = ("softcap", "s_aux")  # given where scores are capped, or a sink takes part of the weight


class KeyTap(Tap):
    """A tap that takes note of the keys of each call, and lets it go on as it would."""

    def __init__(self, model: nn.Module, owners: Sequence[Owner], names: Collection[str]) -> None:
        super().__init__(
            model, owners, wants=lambda site: site.name in names, keep=_without_attention
        )
        self.names = names
        self.keys: dict[str, Tensor] = {}

    def take_over(
        self,
        module: nn.Module,
        streams: tuple[Tensor, Tensor, Tensor],
        mask: Tensor | None,
        given: Mapping[str, Any],
        outer: Any,
    ) -> None:
        """Note the keys, `[batch, head, key, feature]`, grouped heads having each their own."""
        query, key, _ = streams
        site = self._site(self._owners[id(module)], query.shape[1])
        if site.name in self.names and all(given.get(name) is None for name in CAPS):
            grouped = query.shape[1] // key.shape[1]
            self.keys[site.name] = key.detach().repeat_interleave(grouped, dim=1)


def read_keys(question: Question, sites: Collection[Site]) -> dict[str, Tensor]:
    """The keys at these sites by their names, after position has been turned into them.

    Sites where the weights are not the softmax of what queries and keys give with or without a bias
    are left out: of families that write their attention out, cap its scores or have a sink in it.
    """
    model = question.subject.model
    known = anatomy(model)
    tap = KeyTap(model, known.owners, {site.name for site in sites})
    with torch.no_grad(), evaluation_mode(model), opened_by(tap, known):
        run_logits(question)
    return tap.keys


def _without_attention(call: Call) -> Call:
    return replace(call, weights=call.weights.new_empty(0), mask=None, values=None)
