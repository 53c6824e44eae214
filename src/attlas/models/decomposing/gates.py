"""Around a projection: the gate that the mixed values are multiplied by, and the norm behind it."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from attlas.models.decomposing.operations import ADDING, LINEAR, PRODUCTS, TIMES
from attlas.models.decomposing.term_states import Constant, TrackedTensors
from attlas.models.decomposing.term_steps import tensors_in
from attlas.models.facts.hooks import OwnMode
from attlas.models.loading.offloading import weight_of

NORM_TOLERANCE = {torch.float64: 1e-9, torch.float32: 1e-4}
NORMS = {"layer_norm", "rms_norm", "group_norm"}
REARRANGED, NORMED, OTHER = Constant("values"), Constant("norm"), Constant("other")


class GateWatch(OwnMode):
    """Follows the mixed values of one attention after another to their projection.

    A factor counts as a gate only if it was not itself computed from the mixed values, as the
    scale of a norm is.
    """

    def __init__(self) -> None:
        super().__init__()
        self._mixed: Sequence[Tensor] = ()  # the same numbers in each layout that is known
        self._known = TrackedTensors()
        self._gates: list[Tensor] = []

    def begin(self, mixed: Tensor) -> None:
        """An attention has mixed its values, `[batch, query, head, width]`."""
        self._mixed = (mixed, mixed.transpose(1, 2).contiguous())
        self._known, self._gates = TrackedTensors(), []

    def end(self) -> None:
        """The projection was found, or the block has returned."""
        self._mixed = ()

    def gate_of(self, handed: Tensor) -> Tensor | None:
        """The gate `[batch, query, head, width]` by which the mixed values became this tensor."""
        if not self._mixed:
            return None
        mixed, gates = self._mixed[0], self._gates
        return next((gate for gate in gates if are_close(handed, mixed * gate)), None)

    def note_norm(self, given: Tensor, output: Tensor) -> None:
        """A norm was called: what it got may be the mixed values."""
        if self._mixed and self._state(given) in (REARRANGED, NORMED):
            self._known.note(output, NORMED)

    def is_normed(self, handed: Tensor) -> bool:
        """Whether a tensor is the mixed values, or a sum of some of them, through a norm."""
        return bool(self._mixed) and self._known.state(handed) == NORMED

    def run(self, func: Callable[..., Any], args: tuple[Any, ...], given: dict[str, Any]) -> Any:
        """Run the function, and note whether its result comes from the mixed values."""
        if not self._mixed:
            return func(*args, **given)
        name = getattr(func, "__name__", "")
        state = self._follow(name, list(tensors_in((*args, *given.values()))))
        result = func(*args, **given)
        if state is not None:
            self._known.note(result, state)
        return result

    def _follow(self, name: str, tensors: Sequence[Tensor]) -> Constant | None:
        """The state of the result of an operation; None if it does not come from the values."""
        states = [self._state(each) for each in tensors]
        found = [state for state in states if state is not None]
        if not found:
            return None
        if name in TIMES and len(tensors) == 2 and None in states:
            place = states.index(None)
            self._note_gate(tensors[1 - place], tensors[place])
        alone = len(found) == len(states)
        followed = LINEAR | PRODUCTS | NORMS | (ADDING if alone else set())
        if OTHER in found or name not in followed:
            return OTHER
        return NORMED if NORMED in found or name in NORMS else REARRANGED

    def _note_gate(self, values: Tensor, factor: Tensor) -> None:
        layout = self._layout(values)
        if layout is None or torch.broadcast_shapes(values.shape, factor.shape) != values.shape:
            return
        gate = factor.detach().expand(values.shape).reshape(self._mixed[layout].shape)
        self._gates.append(gate.transpose(1, 2) if layout else gate)

    def _state(self, tensor: Tensor) -> Constant | None:
        state = self._known.state(tensor)
        if isinstance(state, Constant):
            return state
        return None if self._layout(tensor) is None else REARRANGED

    def _layout(self, tensor: Tensor) -> int | None:
        """Which layout of the mixed values a tensor has; None if it is something else."""
        if not tensor.is_floating_point():
            return None
        places = enumerate(self._mixed)
        return next((place for place, mixed in places if are_close(tensor, mixed)), None)


def are_close(first: Tensor, second: Tensor) -> bool:
    """Whether two tensors hold the same numbers up to rounding, whatever their shapes."""
    if first.numel() != second.numel():
        return False
    one, two = first.detach().reshape(-1), second.detach().reshape(-1)
    tolerance = 1e-4 if two.dtype in (torch.float32, torch.float64) else 2e-2
    return bool((one - two).abs().max() <= tolerance * two.abs().max())


@dataclass(frozen=True, eq=False)
class LinearNorm:
    """A layer norm with the spread of each row held fixed: linear apart from its `shift`."""

    gain: Tensor  # `[feature]`
    shift: Tensor  # `[feature]`
    spread: Tensor  # `[batch, query, 1]`: the standard deviation of each row

    def apart_from_spread(self, vectors: Tensor) -> Tensor:
        """Vectors `[..., feature]` centred and scaled by the gain, not divided by the spread."""
        return (vectors - vectors.mean(dim=-1, keepdim=True)) * self.gain.to(vectors)


def is_norm(module: nn.Module) -> bool:
    """Whether a module may be a norm: all its parameters are vectors."""
    shapes = [parameter.ndim for parameter in module.parameters()]
    return bool(shapes) and set(shapes) == {1} and not list(module.children())


def linear_norm(module: nn.Module, given: Tensor, gave: Tensor) -> LinearNorm | None:
    """A layer norm as it acted on this input; None if the module is something else."""
    gain, shift, eps = (weight_of(module, name) for name in ("weight", "bias", "eps"))
    if not isinstance(gain, Tensor) or not isinstance(eps, float):
        return None
    wide = given.detach() if given.dtype == torch.float64 else given.detach().float()
    moved = torch.zeros_like(gain) if shift is None else shift
    spread = (wide.var(dim=-1, keepdim=True, correction=0) + eps).sqrt()
    found = LinearNorm(gain.detach().to(wide), moved.detach().to(wide), spread)
    again = found.apart_from_spread(wide) / spread + found.shift
    distance = (again - gave.detach().to(wide)).abs().max()
    limit = NORM_TOLERANCE.get(given.dtype, 2e-2) * again.abs().max()
    return found if bool(distance <= limit) else None
