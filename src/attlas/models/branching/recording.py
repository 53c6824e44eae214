"""Recorded passes: on a GPU, a pass that is repeated in the same shape is replayed.

A pass over one short text launches about two thousand small kernels, which takes much longer than
running them. A recorded pass (a CUDA graph) is one launch. The last few passes of each model are
kept in a shared pool of memory, which is limited to a share of the device's.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from weakref import WeakKeyDictionary

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from attlas.errors import ModelError
from attlas.models.facts.evaluation_mode import every_module

MOST_OF_MEMORY = 0.3
KEPT = 8
Arguments = Mapping[str, Tensor]
Work = Callable[[Arguments], Sequence[Tensor]]


@dataclass(eq=False)
class _Known:
    """A pass that was asked for before, and its recording if there is one."""

    recorded: "_Recorded | None" = None
    refused: bool = False


@dataclass(eq=False)
class _Passes:
    """The last passes of a model, the memory pool they share, and its size in bytes."""

    known: dict[Any, _Known] = field(default_factory=dict)
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
            passes = _passes[model] = _Passes()
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


def _state(model: nn.Module, arguments: Arguments) -> Any:
    shapes = tuple((name, tuple(value.shape)) for name, value in arguments.items())
    modules = every_module(model)
    places = tuple(
        each.data_ptr()
        for module in modules
        for each in module._parameters.values()
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
    given = {
        name: value.clone()
        for name, value in arguments.items()
        if not (name.endswith("attention_mask") and bool(value.all()))  # else the mask is built
    }
    before = torch.cuda.memory_reserved()
    passes.pool = passes.pool or torch.cuda.graph_pool_handle()
    graph = torch.cuda.CUDAGraph()
    try:
        with torch.cuda.graph(graph, pool=passes.pool), _NumbersMadeThere():
            found = work(given)
    except RuntimeError:
        return None
    total = torch.cuda.get_device_properties(torch.cuda.current_device()).total_memory
    passes.held += max(0, torch.cuda.memory_reserved() - before)
    if passes.held > MOST_OF_MEMORY * total:
        return None
    return _Recorded(graph, given, found, work)
