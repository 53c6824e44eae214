"""Weights that are elsewhere: on the host or on disk, and brought for each call by accelerate.

A graph of gradients would hold every weight that was brought, so that in the end the whole model
were in memory. While a model is used, its graphs hold where a weight is, and bring it once more.
"""

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from threading import get_ident
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from attlas.errors import ModelError, UnsupportedModelError
from attlas.restoring import Placed


class Offloaded(NamedTuple):
    """A module whose weights are elsewhere, and the hook of accelerate that brings them."""

    module: nn.Module
    hook: Any

    def names(self) -> Iterator[str]:
        """The names of its weights, those of the modules inside it too if they come together."""
        for name, _ in self.module.named_parameters(recurse=self.hook.place_submodules):
            yield name


def offloaded_modules(modules: list[nn.Module]) -> list[Offloaded]:
    """Those of the modules whose weights are elsewhere."""
    found = [each for each in modules if "_hf_hook" in each.__dict__]
    return [
        Offloaded(module, each)
        for module in found
        for each in _hooks_of(module)
        if getattr(each, "offload", False)
    ]


def _hooks_of(module: Any) -> Sequence[Any]:
    hook = module._hf_hook
    return () if hook is None else getattr(hook, "hooks", (hook,))


def is_offloaded(model: nn.Module) -> bool:
    """Whether some weights of a model are not in the memory of its device."""
    return bool(offloaded_modules(list(model.modules())))


def check_changeable(model: nn.Module, what: str) -> None:
    """Refuse what copies, draws or trains weights, if these are offloaded or quantised."""
    if is_offloaded(model):
        raise UnsupportedModelError(
            f"{what} needs all weights in memory, and some of {type(model).__name__} are "
            "offloaded: load it without device_map, or where it fits"
        )
    if is_quantised(model):
        raise UnsupportedModelError(
            f"{what} needs weights that can change, and those of {type(model).__name__} are "
            "quantised: load it without quantization_config"
        )


def is_quantised(model: nn.Module) -> bool:
    """Whether transformers keeps the weights of a model in 8 or 4 bits."""
    quantiser = getattr(model, "hf_quantizer", None)
    unpacked = getattr(quantiser, "packed_modules", None) == {}  # a GGUF file without its kernel
    return quantiser is not None and not unpacked


def bits_may_be_why(model: nn.Module) -> str:
    """What to say of a quantised model that a method refuses."""
    config = getattr(getattr(model, "hf_quantizer", None), "quantization_config", None)
    bits = "4 bits" if getattr(config, "load_in_4bit", False) else "fewer bits"
    return f"its weights are in {bits}, which may be why: load it without quantization_config"


def refuse_offloaded_bits(model: nn.Module) -> None:
    """Refuse weights in fewer bits that are elsewhere: accelerate cannot bring these back."""
    if is_quantised(model) and is_offloaded(model):
        raise ModelError(
            f"weights of {type(model).__name__} in fewer bits cannot be offloaded: leave out "
            "quantization_config, or give the device more memory"
        )


def multiply_exactly(model: Any) -> None:
    """Keep 4-bit weights of bitsandbytes from its kernel for some processors.

    It rounds, lets no gradient through, and has the weights packed anew when they are first used.
    """
    for module in model.modules():
        if getattr(module, "support_avx512bf16_for_cpu", False):
            module.support_avx512bf16_for_cpu = False


def device_of(model: nn.Module) -> torch.device:
    """The device that the inputs of a model go to, also if its weights are elsewhere."""
    first = next(model.parameters()).device
    if first.type != "meta":
        return first
    for each in offloaded_modules(list(model.modules())):
        if each.hook.execution_device is not None:
            return torch.empty(0, device=each.hook.execution_device).device
    return first


def dtype_of(model: nn.Module) -> torch.dtype:
    """The number format that a model computes in: that of its first weight with fractions."""
    return next(each.dtype for each in model.parameters() if each.is_floating_point())


def is_spread(modules: list[nn.Module]) -> bool:
    """Whether accelerate moves the weights or the inputs of modules while they run."""
    return any("_hf_hook" in vars(each) for each in modules)


def as_numbers(weight: Tensor) -> Tensor:
    """A weight as plain numbers, whatever it is kept in."""
    is_plain = type(weight) in (Tensor, nn.Parameter)
    return weight if is_plain or not hasattr(weight, "dequantize") else weight.dequantize()


def weight_of(module: nn.Module, name: str) -> Any:
    """A weight of a module, brought if it is elsewhere; None if it has none of this name."""
    found = getattr(module, name, None)
    if isinstance(found, Tensor) and found.is_meta:
        for each in offloaded_modules([module]):
            return each.hook.weights_map[name].to(each.hook.execution_device, found.dtype)
    return found


def kept_weights(model: nn.Module) -> Mapping[str, Any]:
    """For each weight that is elsewhere, by its name in the model, the map that brings it."""
    return {
        f"{path}.{name}".removeprefix("."): (each.hook.weights_map, name)
        for path, module in model.named_modules()
        for each in offloaded_modules([module])
        for name in each.names()
    }


def tie_offloaded(model: Any) -> None:
    """Let a weight that is tied to another be found on disk where that one is.

    transformers leaves it out where it writes weights anew: of pickled weights, of a GGUF file.
    """
    kept = kept_weights(model)
    for name, twin in (getattr(model, "all_tied_weights_keys", None) or {}).items():
        index = getattr(getattr(kept.get(name, ({},))[0], "dataset", None), "index", {})
        if twin in index:
            index.setdefault(name, index[twin])


class _Brought(NamedTuple):
    """A weight in a graph: where it is, and the part of it that the graph needs."""

    hook: Any
    name: str
    dtype: torch.dtype
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    offset: int

    def again(self) -> Tensor:
        """Bring it once more."""
        whole = self.hook.weights_map[self.name].to(self.hook.execution_device, self.dtype)
        part: Tensor = whole.as_strided(self.shape, self.strides, self.offset)
        return part


class LightGraphs:
    """Graphs that hold no offloaded weight, for as long as a model is in use."""

    def __init__(self, modules: list[Offloaded], changes: Placed) -> None:
        self._here: dict[int, tuple[Any, str]] = {}  # by address, the weights that were brought
        self._thread: int | None = None  # torch has one stack of such functions for each thread
        changes.note(self._pop)
        for each in modules:
            changes.note(partial(setattr, each.module, "_hf_hook", each.module._hf_hook))
            changes.note(partial(_send_away, each))
            each.module._hf_hook = _watched(self._here, each)
        torch._C._autograd._push_saved_tensors_default_hooks(self._pack, _unpack)
        self._thread = get_ident()

    def _pop(self) -> None:
        self._here.clear()  # left on the stack of another thread, it holds every tensor as it is
        if self._thread == get_ident():
            self._thread = None
            torch._C._autograd._pop_saved_tensors_default_hooks()

    def _pack(self, tensor: Tensor) -> Any:
        found = self._here.get(_address(tensor)) if self._here else None
        if found is None or tensor.requires_grad:
            return tensor
        offset = int(tensor.storage_offset())
        return _Brought(*found, tensor.dtype, tuple(tensor.shape), tensor.stride(), offset)


def _unpack(packed: Any) -> Tensor:
    return packed.again() if isinstance(packed, _Brought) else packed


def _address(tensor: Tensor) -> int:
    return tensor.untyped_storage().data_ptr()


def _send_away(each: Offloaded) -> None:
    """Take the weights of a call that was interrupted out of memory."""
    weights = dict(each.module.named_parameters(recurse=each.hook.place_submodules))
    if any(not weight.is_meta for weight in weights.values()):
        each.hook.post_forward(each.module, None)


def _watched(here: dict[int, tuple[Any, str]], each: Offloaded) -> Any:
    """The hook of a module, followed by one that notes which weights are there."""
    from accelerate.hooks import ModelHook, SequentialHook

    class Watch(ModelHook):  # type: ignore[misc]
        def pre_forward(self, module: nn.Module, *args: Any, **kwargs: Any) -> Any:
            weights = dict(module.named_parameters(recurse=each.hook.place_submodules))
            self.brought = {_address(weight): (each.hook, name) for name, weight in weights.items()}
            here.update(self.brought)
            return args, kwargs

        def post_forward(self, module: nn.Module, output: Any) -> Any:
            for address in self.brought:
                here.pop(address, None)
            return output

    return SequentialHook(each.module._hf_hook, Watch())
