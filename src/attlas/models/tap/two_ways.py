"""A recorded pass over one text with a recorded way back from its output.

Which gradient is asked for is known only once the output is: the target may be what the model
predicts. So a pass and its way back are two recordings.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from attlas.models.tap.recording import (
    KEPT,
    PASSES,
    UNRECORDABLE,
    Arguments,
    InPieces,
    Passes,
    captured,
    fits,
    given_to,
    is_close,
    new_pool,
    state_of,
)

COUNTED = 256  # passes of a model whose sights are counted
SIGHTS = 3  # so often must a pass be asked for to be recorded
Run = Callable[[Arguments], "Ran"]


@dataclass(frozen=True, eq=False)
class Ran:
    """What a pass gave: its output, what is read of it, and on what gradients may be asked for."""

    output: Tensor
    read: Sequence[Sequence[Tensor | None]]  # in groups: those of one group are often of one shape
    leaves: Sequence[Tensor]
    about: Any = None  # what is the same whenever the pass is repeated


@dataclass(eq=False)
class _KnownWays:
    """A pass with its way back that was asked for before: how often, and its recording."""

    sights: int = 0
    recorded: "TwoWays | None" = None
    refused: bool = False


def two_ways(model: nn.Module, key: Any, arguments: Arguments, run: Run) -> "TwoWays | None":
    """The recording of a pass with its way back; None while there is none.

    `key` is as in `run_recorded`. A pass is recorded when it is asked for the third time, since
    that takes longer than running it, and refused for good if a replay is not the pass again. The
    caller keeps other threads out of the model until it has played both ways.
    """
    state = state_of(model, arguments)
    if state.met:
        return None
    whole = (key, state)
    ways = PASSES.setdefault(model, Passes()).ways
    known = ways.pop(whole, None) or _KnownWays()
    ways[whole] = known  # now the latest
    known.sights += 1
    if known.sights >= SIGHTS and known.recorded is None and not known.refused:
        known.recorded = _record_ways(arguments, run, PASSES[model])
        known.refused = known.recorded is None
        recorded = [each for each in ways.values() if each.recorded is not None]
        for oldest in recorded[:-KEPT]:
            oldest.recorded, oldest.sights = None, 0
    if len(ways) > COUNTED:
        ways.pop(next(iter(ways)))
    return known.recorded


class TwoWays:
    """A recorded pass and the recorded way back, with the tensors that they read and write."""

    def __init__(self, given: dict[str, Tensor], run: Run, slope: Tensor, pool: Any) -> None:
        self._given, self._slope = given, slope
        latest: list[Ran] = []

        def there() -> tuple[Tensor, list[InPieces]]:
            latest[:] = [run(given)]
            return latest[0].output.detach(), [InPieces(each) for each in latest[0].read]

        self._there, (self._output, self._read) = captured(pool, there)
        self._back, self._gradients = captured(pool, lambda: InPieces(_slopes(latest[0], slope)))
        self.about = latest[0].about

    def play(self, arguments: Arguments) -> tuple[Tensor, list[list[Tensor | None]]]:
        """The output on other arguments of the same shape, and what is read of the pass."""
        for name, place in self._given.items():
            place.copy_(arguments[name], non_blocking=True)
        self._there.replay()
        return self._output.clone(), [each.copies() for each in self._read]

    def play_back(self, slope: Tensor) -> list[Tensor]:
        """The gradient on each leaf of the last pass, by that on its output."""
        self._slope.copy_(slope)
        self._back.replay()
        return [each for each in self._gradients.copies() if each is not None]

    def repeats(self, arguments: Arguments, expected: Ran) -> bool:
        """Whether it gives what the pass gave that was run on these arguments."""
        output, read = self.play(arguments)
        slope = torch.ones_like(self._slope)
        found = [output, *(each for group in read for each in group), *self.play_back(slope)]
        known = [each for group in expected.read for each in group]
        wanted = [expected.output, *known, *_slopes(expected, slope)]
        # A mask that hides nothing may be there in one and not in the other.
        return all(
            one is None or other is None or is_close(one, other.detach())
            for one, other in zip(found, wanted, strict=True)
        )


def _record_ways(arguments: Arguments, run: Run, passes: Passes) -> TwoWays | None:
    """Record a pass and its way back; None if that is not possible, or is not the pass again."""
    expected = run(arguments)
    if not expected.output.requires_grad:
        return None
    before = torch.cuda.memory_reserved() if expected.output.is_cuda else 0
    passes.pool = passes.pool or new_pool()
    slope = torch.ones_like(expected.output)
    try:
        recorded = TwoWays(given_to(arguments), run, slope, passes.pool)
    except UNRECORDABLE:
        return None
    if not fits(passes, before):
        return None
    return recorded if recorded.repeats(arguments, expected) else None


def _slopes(ran: Ran, slope: Tensor) -> Sequence[Tensor]:
    return torch.autograd.grad(ran.output, ran.leaves, slope, materialize_grads=True)


def hides(arguments: Arguments) -> bool:
    """Whether an attention mask hides anything."""
    masks = (value for name, value in arguments.items() if name.endswith("attention_mask"))
    return not all(bool(mask.all()) for mask in masks)
