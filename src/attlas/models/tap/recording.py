"""Recorded passes: on a GPU, a pass that is repeated in the same shape is replayed.

A pass over one short text launches about two thousand small kernels, which takes much longer than
running them. A recorded pass (a CUDA graph) is one launch. The last few passes of each model are
kept in a shared pool of memory, which is limited to a share of the device's.

A pass back from the output may be recorded with it (`TwoWays`): which gradient is asked for is
known only once the output is.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar
from weakref import WeakKeyDictionary

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from attlas.errors import ModelError
from attlas.models.facts.evaluation_mode import every_module

MOST_OF_MEMORY = 0.3
KEPT = 8
COUNTED = 256  # passes of a model whose sights are counted
SIGHTS = 3  # so often must a pass be asked for to be recorded with its way back
PASSIVE = "transformers.utils.output_capturing"  # whose hooks do nothing unless asked for
Arguments = Mapping[str, Tensor]
Work = Callable[[Arguments], Sequence[Tensor]]
Run = Callable[[Arguments], "Ran"]
Made = TypeVar("Made")


@dataclass(frozen=True, eq=False)
class Ran:
    """What a pass gave: its output, what is read of it, and on what gradients may be asked for."""

    output: Tensor
    read: Sequence[Sequence[Tensor | None]]  # in groups: those of one group are often of one shape
    leaves: Sequence[Tensor]
    about: Any = None  # what is the same whenever the pass is repeated


@dataclass(eq=False)
class _Known:
    """A pass that was asked for before, and its recording if there is one."""

    recorded: "_Recorded | None" = None
    refused: bool = False


@dataclass(eq=False)
class _KnownWays:
    """A pass with its way back that was asked for before: how often, and its recording."""

    sights: int = 0
    recorded: "TwoWays | None" = None


@dataclass(eq=False)
class _Passes:
    """The last passes of a model, the memory pool they share, and its size in bytes."""

    known: dict[Any, _Known] = field(default_factory=dict)
    ways: dict[Any, _KnownWays] = field(default_factory=dict)
    pool: Any = None
    held: int = 0


_passes: WeakKeyDictionary[nn.Module, _Passes] = WeakKeyDictionary()


def run_recorded(model: nn.Module, key: Any, arguments: Arguments, work: Work) -> Sequence[Tensor]:
    """Run `work` on these arguments, or replay it if the same was asked before.

    `key` must contain everything that the work depends on, besides the values of the arguments and
    of the weights. The addresses of the weights and the hooks on the model are added here.
    """
    whole = (key, _state(model, arguments))
    passes = _passes.setdefault(model, _Passes())
    known = passes.known.get(whole)
    if known is None:
        if len(passes.known) == KEPT:
            passes = _passes[model] = _Passes(ways=passes.ways)
        passes.known[whole] = _Known()
        return work(arguments)
    if known.refused:
        return work(arguments)
    if known.recorded is None:
        found = work(arguments)
        known.recorded = _proven(_record(arguments, work, passes), arguments, found)
        known.refused = known.recorded is None
        return found
    return known.recorded.play(arguments)


def two_ways(model: nn.Module, key: Any, arguments: Arguments, run: Run) -> "TwoWays | None":
    """The recording of a pass with its way back; None while there is none.

    `key` is as in `run_recorded`. A pass is recorded when it is asked for the third time, since
    that takes longer than running it, and refused for good if a replay is not the pass again. The
    caller keeps other threads out of the model until it has played both ways.
    """
    if has_hooks(model):
        return None
    whole = (key, _state(model, arguments))
    ways = _passes.setdefault(model, _Passes()).ways
    known = ways.pop(whole, None) or _KnownWays()
    ways[whole] = known  # now the latest
    known.sights += 1
    if known.sights == SIGHTS:
        known.recorded = _record_ways(arguments, run, _passes[model])
        recorded = [each for each in ways.values() if each.recorded is not None]
        for oldest in recorded[:-KEPT]:
            oldest.recorded, oldest.sights = None, 0
    if len(ways) > COUNTED:
        ways.pop(next(iter(ways)))
    return known.recorded


def has_hooks(model: nn.Module) -> bool:
    """Whether somebody's hook, or a forward of their own, takes part in a pass.

    It would not be called when a recording is played.
    """
    return any(
        "forward" in module.__dict__
        or any(
            getattr(hook, "__module__", None) != PASSIVE
            for each in (module._forward_hooks, module._forward_pre_hooks)
            for hook in each.values()
        )
        for module in every_module(model)
    )


class TwoWays:
    """A recorded pass and the recorded way back, with the tensors that they read and write."""

    def __init__(self, given: dict[str, Tensor], run: Run, slope: Tensor, pool: Any) -> None:
        self._given, self._slope = given, slope
        latest: list[Ran] = []

        def there() -> tuple[Tensor, list[_Group]]:
            latest[:] = [run(given)]
            return latest[0].output.detach(), [_Group(each) for each in latest[0].read]

        self._there, (self._output, self._read) = _captured(pool, there)
        self._back, self._gradients = _captured(pool, lambda: _Group(_slopes(latest[0], slope)))
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
        return all(
            (one is None and other is None)
            or (one is not None and other is not None and _close(one, other.detach()))
            for one, other in zip(found, wanted, strict=True)
        )


class _Group:
    """Tensors of a recording, in one piece if they are of one shape: one copy copies them all."""

    def __init__(self, tensors: Sequence[Tensor | None]) -> None:
        there = {id(each): each.detach() for each in tensors if each is not None}
        numbers = {name: number for number, name in enumerate(there)}
        self._numbers = [None if each is None else numbers[id(each)] for each in tensors]
        own = list(there.values())
        alike = len({(each.shape, each.dtype) for each in own}) == 1
        self._whole = torch.stack(own) if alike else None
        self._parts = [] if alike else own

    def copies(self) -> list[Tensor | None]:
        """What is in them now."""
        parts = [each.clone() for each in self._parts]
        if self._whole is not None:
            parts = list(self._whole.clone().unbind())
        return [None if number is None else parts[number] for number in self._numbers]


def _record_ways(arguments: Arguments, run: Run, passes: _Passes) -> TwoWays | None:
    """Record a pass and its way back; None if that is not possible, or is not the pass again."""
    expected = run(arguments)
    if not expected.output.requires_grad:
        return None
    before = torch.cuda.memory_reserved() if expected.output.is_cuda else 0
    passes.pool = passes.pool or _new_pool()
    slope = torch.ones_like(expected.output)
    try:
        recorded = TwoWays(_given(arguments), run, slope, passes.pool)
    except RuntimeError:
        return None
    if not _fits(passes, before):
        return None
    return recorded if recorded.repeats(arguments, expected) else None


def _new_pool() -> Any:
    return torch.cuda.graph_pool_handle()


def _fits(passes: _Passes, before: int) -> bool:
    """Whether the recordings of a model leave enough of the device's memory to others."""
    total = torch.cuda.get_device_properties(torch.cuda.current_device()).total_memory
    passes.held += max(0, torch.cuda.memory_reserved() - before)
    return passes.held <= MOST_OF_MEMORY * total


def _slopes(ran: Ran, slope: Tensor) -> Sequence[Tensor]:
    return torch.autograd.grad(ran.output, ran.leaves, slope, materialize_grads=True)


def _captured(pool: Any, work: Callable[[], Made]) -> tuple[Any, Made]:
    """A CUDA graph of this work, and what it writes to."""
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, pool=pool), _NumbersMadeThere():
        made = work()
    return graph, made


def hides(arguments: Arguments) -> bool:
    """Whether an attention mask hides anything."""
    masks = (value for name, value in arguments.items() if name.endswith("attention_mask"))
    return not all(bool(mask.all()) for mask in masks)


def _given(arguments: Arguments) -> dict[str, Tensor]:
    """The tensors that a recording reads; a mask that hides nothing would only be built."""
    return {
        name: value.clone()
        for name, value in arguments.items()
        if not (name.endswith("attention_mask") and bool(value.all()))
    }


def _state(model: nn.Module, arguments: Arguments) -> Any:
    shapes = tuple((name, tuple(value.shape)) for name, value in arguments.items())
    modules = every_module(model)
    places = tuple(
        each.data_ptr()
        for module in modules
        for held in (module._parameters, module._buffers)
        for each in held.values()
        if each is not None
    )
    hooks = tuple(
        id(hook)
        for module in modules
        for each in (module._forward_hooks, module._forward_pre_hooks)
        for hook in each.values()
    )
    exactness = (
        torch.backends.cuda.matmul.allow_tf32,
        torch.is_autocast_enabled("cuda"),
        torch.backends.cuda.matmul.allow_bf16_reduced_precision_reduction,
    )
    return shapes, places, hooks, exactness


class _Recorded:
    """A CUDA graph, with the tensors that it reads and writes."""

    def __init__(
        self,
        graph: torch.cuda.CUDAGraph,
        given: dict[str, Tensor],
        found: Sequence[Tensor],
        work: Work,
    ) -> None:
        self.graph, self.given, self.found = graph, given, found
        self._work = work  # keeps alive what the graph reads from outside

    def play(self, arguments: Arguments) -> list[Tensor]:
        """Replay the pass on other arguments of the same shape."""
        for name, place in self.given.items():
            place.copy_(arguments[name])
        self.graph.replay()
        found = [each.clone() for each in self.found]
        if not torch.isfinite(found[0]).all():
            raise ModelError("the model's output is not finite")
        return found


class _NumbersMadeThere(TorchFunctionMode):
    """Creates single numbers on the device: a recording cannot copy them from the host."""

    def __torch_function__(
        self, func: Any, types: Any, args: Any = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        given = kwargs or {}
        if func is torch.tensor and args and isinstance(args[0], (int, float)):
            return torch.full((), args[0], **given)
        return func(*args, **given)


def _proven(
    recorded: _Recorded | None, arguments: Arguments, found: Sequence[Tensor]
) -> _Recorded | None:
    """The recording, if it reproduces the results of the pass; else None."""
    if recorded is None:
        return None
    pairs = zip(recorded.play(arguments), found, strict=True)
    same = all(one.shape == other.shape and _close(one, other) for one, other in pairs)
    return recorded if same else None


def _close(one: Tensor, other: Tensor) -> bool:
    rough = one.dtype == torch.float32 and torch.backends.cuda.matmul.allow_tf32
    exact = one.dtype in (torch.float32, torch.float64) and not rough
    scale = float(other.abs().max()) or 1.0
    return float((one - other).abs().max()) <= (1e-4 if exact else 2e-2) * scale


def _record(arguments: Arguments, work: Work, passes: _Passes) -> _Recorded | None:
    """Record the work; None if it cannot be recorded or takes too much memory."""
    given = _given(arguments)
    before = torch.cuda.memory_reserved()
    passes.pool = passes.pool or _new_pool()
    try:
        graph, found = _captured(passes.pool, lambda: work(given))
    except RuntimeError:
        return None
    return _Recorded(graph, given, found, work) if _fits(passes, before) else None
