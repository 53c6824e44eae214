"""Recorded passes: on a GPU, a pass that is repeated in the same shape is replayed.

A pass over one short text launches about two thousand small kernels, which takes much longer than
running them. A recorded pass (a CUDA graph) is one launch. The last few passes of each model are
kept in a shared pool of memory, which is limited to a share of the device's.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeVar
from weakref import WeakKeyDictionary

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from attlas.errors import ModelError, UnsupportedModelError
from attlas.models.facts.evaluation_mode import (
    evaluation_mode,
    every_module,
    stamp_of,
)
from attlas.models.loading.offloading import is_spread

MOST_OF_MEMORY = 0.3
KEPT = 8
OWN = evaluation_mode.__module__  # whose hooks come and go with each use
PASSIVE = "transformers.utils.output_capturing"  # whose hooks do nothing unless asked for
# What a pass raises that cannot be recorded; if it cannot be run either, running it says so.
UNRECORDABLE = (RuntimeError, UnsupportedModelError)
Arguments = Mapping[str, Tensor]
Work = Callable[[Arguments], Sequence[Tensor]]
Made = TypeVar("Made")


@dataclass(eq=False)
class _Known:
    """A pass that was asked for before, and its recording if there is one."""

    recorded: "_Recorded | None" = None
    refused: bool = False


@dataclass(eq=False)
class Passes:
    """The last passes of a model, the memory pool they share, and its size in bytes."""

    known: dict[Any, _Known] = field(default_factory=dict)
    ways: dict[Any, Any] = field(
        default_factory=dict
    )  # passes with their ways back, see `two_ways`
    pool: Any = None
    held: int = 0


PASSES: WeakKeyDictionary[nn.Module, Passes] = WeakKeyDictionary()
_recordable: WeakKeyDictionary[nn.Module, tuple[object, bool]] = WeakKeyDictionary()


def run_recorded(
    model: nn.Module, key: Any, arguments: Arguments, work: Work, *, checked: bool = True
) -> Sequence[Tensor]:
    """Run `work` on these arguments, or replay it if the same was asked before.

    `checked` waits for the first result and raises if it is not finite; a caller who will see that
    need not wait.

    `key` must contain everything that the work depends on, besides the values of the arguments and
    of the weights. The addresses of the weights and the hooks on the model are added here.
    """
    whole = (key, state_of(model, arguments))
    passes = PASSES.setdefault(model, Passes())
    known = passes.known.get(whole)
    if known is None:
        if len(passes.known) == KEPT:
            passes = PASSES[model] = Passes(ways=passes.ways)
        passes.known[whole] = _Known()
        return work(arguments)
    if known.refused:
        return work(arguments)
    if known.recorded is None:
        found = work(arguments)
        known.recorded = _proven(_record(arguments, work, passes), arguments, found)
        known.refused = known.recorded is None
        return found
    return known.recorded.play(arguments, checked)


def is_recordable(model: nn.Module) -> bool:
    """Whether a model is on one device, and the host takes no part in its passes."""
    stamp, (known, found) = stamp_of(model), _recordable.get(model, (None, False))
    if known is not stamp:
        modules = every_module(model)
        # A recurrent network is handed the lengths of its texts by the host.
        found = not is_spread(modules) and not any(isinstance(each, nn.RNNBase) for each in modules)
        _recordable[model] = stamp, found
    return found


def new_pool() -> Any:
    """A pool of memory for the recordings of a model."""
    return torch.cuda.graph_pool_handle()


def fits(passes: Passes, before: int) -> bool:
    """Whether the recordings of a model leave enough of the process's memory to others."""
    total = torch.cuda.get_device_properties(torch.cuda.current_device()).total_memory
    passes.held += max(0, torch.cuda.memory_reserved() - before)
    return passes.held <= MOST_OF_MEMORY * torch.cuda.get_per_process_memory_fraction() * total


def forget_recordings() -> None:
    """Give up the memory of all recordings, which is theirs alone."""
    PASSES.clear()


def captured(pool: Any, work: Callable[[], Made]) -> tuple[Any, Made]:
    """A CUDA graph of this work, and what it writes to."""
    graph, stream = torch.cuda.CUDAGraph(), torch.cuda.current_stream()
    try:
        with torch.cuda.graph(graph, pool=pool), _NumbersMadeThere():
            made = work()
    except BaseException:
        torch.cuda.set_stream(stream)  # where a recording fails, torch stays on its own
        raise
    return graph, made


def given_to(arguments: Arguments) -> dict[str, Tensor]:
    """The tensors that a recording reads; a mask that hides nothing would only be built."""
    return {
        name: value.clone()
        for name, value in arguments.items()
        if not (name.endswith("attention_mask") and bool(value.all()))
    }


class PassState(NamedTuple):
    """What a recording depends on besides the values of arguments and weights."""

    shapes: tuple[Any, ...]
    places: tuple[int, ...]  # of the weights
    hooks: tuple[int, ...]
    exactness: tuple[bool, ...]
    met: bool  # whether somebody's hook, or a forward of their own, is to be called in a pass


def state_of(model: nn.Module, arguments: Arguments) -> PassState:
    """What a recording of this model on arguments of these shapes depends on."""
    modules = every_module(model)
    held = [each for own in modules for each in (own._parameters, own._buffers) if each]
    kept = [each for store in held for each in store.values()]
    called = [each for own in modules for each in (own._forward_hooks, own._forward_pre_hooks)]
    found = [hook for each in called if each for hook in each.values()]
    hooks = [hook for hook in found if getattr(hook, "__module__", None) != OWN]
    met = any(getattr(hook, "__module__", None) != PASSIVE for hook in hooks)
    return PassState(
        tuple((name, tuple(value.shape)) for name, value in arguments.items()),
        tuple([each.data_ptr() for each in kept if each is not None]),
        tuple(map(id, hooks)),
        (
            torch.backends.cuda.matmul.allow_tf32,
            torch.is_autocast_enabled("cuda"),
            torch.backends.cuda.matmul.allow_bf16_reduced_precision_reduction,
        ),
        met or bool([own for own in modules if "forward" in own.__dict__]),
    )


class InPieces:
    """Tensors that a recording writes; those of one shape lie in one piece, copied at once."""

    def __init__(self, tensors: Sequence[Tensor | None]) -> None:
        there = {id(each): each.detach() for each in tensors if each is not None}
        alike: dict[tuple[torch.Size, torch.dtype], list[int]] = {}
        for name, each in there.items():
            alike.setdefault((each.shape, each.dtype), []).append(name)
        self._pieces = [torch.stack([there[name] for name in names]) for names in alike.values()]
        order = [name for names in alike.values() for name in names]
        place = {name: number for number, name in enumerate(order)}
        self._places = [None if each is None else place[id(each)] for each in tensors]

    def copies(self) -> list[Tensor | None]:
        """What is in them now."""
        parts = [part for piece in self._pieces for part in piece.clone().unbind()]
        return [None if place is None else parts[place] for place in self._places]


class _Recorded:
    """A CUDA graph, with the tensors that it reads and writes."""

    def __init__(
        self,
        graph: Any,  # a CUDA graph
        given: dict[str, Tensor],
        found: "InPieces",
        work: Work,
    ) -> None:
        self.graph, self.given, self.found = graph, given, found
        self._work = work  # keeps alive what the graph reads from outside

    def play(self, arguments: Arguments, checked: bool = True) -> Sequence[Tensor]:
        """Replay the pass on other arguments of the same shape."""
        for name, place in self.given.items():
            place.copy_(arguments[name])
        self.graph.replay()
        found = [each for each in self.found.copies() if each is not None]
        if checked and not torch.isfinite(found[0]).all():
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
    same = all(one.shape == other.shape and is_close(one, other) for one, other in pairs)
    return recorded if same else None


def is_close(one: Tensor, other: Tensor) -> bool:
    """Whether a replay and a pass agree, as far as their precision goes."""
    rough = one.dtype == torch.float32 and torch.backends.cuda.matmul.allow_tf32
    exact = one.dtype in (torch.float32, torch.float64) and not rough
    scale = float(other.abs().max()) or 1.0
    return float((one - other).abs().max()) <= (1e-4 if exact else 2e-2) * scale


def _record(arguments: Arguments, work: Work, passes: Passes) -> _Recorded | None:
    """Record the work; None if it cannot be recorded or takes too much memory."""
    given = given_to(arguments)
    before = torch.cuda.memory_reserved()
    passes.pool = passes.pool or new_pool()
    try:
        graph, found = captured(passes.pool, lambda: InPieces(work(given)))
    except UNRECORDABLE:
        return None
    return _Recorded(graph, given, found, work) if fits(passes, before) else None
