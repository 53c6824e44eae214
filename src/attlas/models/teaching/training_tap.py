"""TrainingTap: attention of a model that is being trained, in the graph of its parameters.

Eager attention returns its weights after dropout, where a weight of zero may be a weight that was
dropped. Here the weights are read before dropout; then dropout is applied to them as the modelling
file does, so that a training step is the one on eager attention, to the bit.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from torch import Tensor, nn
from torch.nn.functional import dropout

from attlas.models.facts.anatomy import anatomy
from attlas.models.facts.sites import Owner
from attlas.models.tap.call import Call
from attlas.models.tap.eager_attention import check_mixing, mix, run_eager
from attlas.models.tap.opening import opened_by
from attlas.models.tap.tap import Tap
from attlas.results import Site

KeyChange = Callable[[Site, Tensor], Tensor]  # keys `[batch, head, key, width]` to new keys


class TrainingTap(Tap):
    """A tap that freezes nothing: it reads weights before dropout, values and entering states."""

    def __init__(
        self, model: nn.Module, owners: Sequence[Owner], change: KeyChange | None = None
    ) -> None:
        super().__init__(model, owners, keep=lambda call: call)
        self.change = change
        self.states: dict[Site, Tensor] = {}  # that enter each attention, `[batch, token, feature]`

    def arrive(self, module: nn.Module, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> None:
        """An attention module is called: keep what it is handed to attend from."""
        super().arrive(module, args, kwargs)
        handed, _ = self._owners[id(module)].streams(args, kwargs)
        if isinstance(handed, Tensor):
            for part in self._places[id(module)]:
                self.states[part.site] = handed

    def take_over(
        self,
        module: nn.Module,
        streams: tuple[Tensor, Tensor, Tensor],
        mask: Tensor | None,
        given: Mapping[str, Any],
        outer: Sequence[Tap],
    ) -> Tensor | None:
        """The attention output of a call, with dropout as the model has it."""
        query, key, value = streams
        owner = self._owners[id(module)]
        self._unmet[owner.path] -= 1
        parts = self._parts(owner, query.shape[1])
        if self.change is not None:
            key = self.change(parts[0].site, key).to(key)
        share = float(given.get("dropout") or 0.0) if module.training else 0.0
        plain = {**given, "dropout": 0.0} if share else given
        output, weights = run_eager(module, query, key, value, mask, **plain)
        if share:
            check_mixing(module, weights, value, output)
            output = mix(dropout(weights, p=share, training=True), value)
        for part in parts:
            seen = None if mask is None else part.of(mask)
            self._record(Call(part.site, owner.path, part.of(weights), seen, part.among(value)))
        return output

    @property
    def has_keys(self) -> bool:
        """Whether all attention is on the interface, where its keys pass by."""
        return all(owner.road == "interface" for owner in self._owners.values())

    def state_of(self, site: Site) -> Tensor | None:
        """What entered the attention at a site."""
        found = [state for each, state in self.states.items() if each.name == site.name]
        return found[-1] if found else None


@contextmanager
def opened_for_training(model: nn.Module, change: KeyChange | None = None) -> Iterator[TrainingTap]:
    """Open a model whose parameters learn; within the block every pass is read.

    `change` rewrites the keys of every attention on the interface before they meet the queries.
    """
    known = anatomy(model)
    with opened_by(TrainingTap(model, known.owners, change), known) as opened:
        yield opened
