"""Evaluation mode: a model is locked, without dropout and frozen; all is restored afterwards."""

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any
from weakref import WeakKeyDictionary

import torch
from torch import nn

_locks: WeakKeyDictionary[nn.Module, threading.RLock] = WeakKeyDictionary()
_locks_guard = threading.Lock()
# The modules of each model in use; changed only while the lock of the model is held.
_in_use: WeakKeyDictionary[nn.Module, list[nn.Module]] = WeakKeyDictionary()
_planless: list[bool] = []  # one entry for each open block of `unplanned_attention`


def model_lock(model: nn.Module) -> threading.RLock:
    """The lock of a model, the same for every caller; a thread may take it repeatedly."""
    with _locks_guard:
        return _locks.setdefault(model, threading.RLock())


def every_module(model: nn.Module) -> list[nn.Module]:
    """Every module once; much faster than `modules()`."""
    found: dict[nn.Module, None] = {}
    waiting: list[nn.Module | None] = [model]
    while waiting:
        module = waiting.pop()
        if module is not None and module not in found:
            found[module] = None
            waiting.extend(module._modules.values())
    return list(found)


def modules_of(model: nn.Module) -> list[nn.Module]:
    """Every module once; those of a model in use are known."""
    return _in_use.get(model) or every_module(model)


@contextmanager
def unplanned_attention() -> Iterator[None]:
    """Keep torch from using cuDNN's fused attention within the block.

    cuDNN plans, for up to a second, for every new shape of a batch, and an audit has thousands.
    The setting is one for the process: the last block to end restores it.
    """
    with _locks_guard:
        _planless.append(torch.backends.cuda.cudnn_sdp_enabled())
        torch.backends.cuda.enable_cudnn_sdp(False)
    try:
        yield
    finally:
        with _locks_guard:
            before = _planless.pop()
            if not _planless:
                torch.backends.cuda.enable_cudnn_sdp(before)


@contextmanager
def evaluation_mode(model: nn.Module) -> Iterator[None]:
    """Switch dropout off, freeze the parameters and keep other threads out, within the block.

    Blocks of one thread may nest; the inner ones cost nothing.
    """
    with model_lock(model):
        if model in _in_use:
            yield
            return
        modules = every_module(model)
        training = [module for module in modules if module.training]
        trainable = [
            parameter
            for module in modules
            for parameter in module._parameters.values()
            if parameter is not None and parameter.requires_grad
        ]
        try:
            _in_use[model] = modules
            for module in training:
                module.training = False
            for parameter in trainable:
                parameter.requires_grad_(False)
            with unplanned_attention(), _sparse_again(model, modules), _uncut_cycles(modules):
                yield
        finally:
            _in_use.pop(model, None)
            for module in training:
                module.training = True
            for parameter in trainable:
                parameter.requires_grad_(True)


@contextmanager
def _sparse_again(model: nn.Module, modules: Sequence[nn.Module]) -> Iterator[None]:
    """Undo, before each pass and after the block, what BigBird does to itself in a short text.

    A text that is too short for blocks makes it attend to everything from then on, also in long
    texts. Each text is to be read as a model reads it that has seen no other.
    """
    found = [(each, each._modules.get("self")) for each in modules if _is_sparse(each)]
    if not found:
        yield
        return

    def restore(*_: Any) -> None:
        for module, own in found:
            if not _is_sparse(module):
                module.__dict__["attention_type"] = "block_sparse"
                if own is not None:
                    module._modules["self"] = own

    handle = model.register_forward_pre_hook(restore)
    try:
        yield
    finally:
        handle.remove()
        restore()


@contextmanager
def _uncut_cycles(modules: Sequence[nn.Module]) -> Iterator[None]:
    """Let gradients through all cycles of HRM, within the block.

    To save memory in training it runs all but the last cycles without gradients. What comes out is
    the same, but a gradient would leave out most of the model.
    """
    found: list[tuple[Any, list[int]]] = []
    for module in modules:
        cut: list[int] | None = module.__dict__.get("L_bp_cycles_padded")
        if cut is not None:
            found.append((module, cut))
    try:
        for module, cut in found:
            module.L_bp_cycles_padded = [module.config.L_cycles] * len(cut)
        yield
    finally:
        for module, cut in found:
            module.L_bp_cycles_padded = cut


def _is_sparse(module: nn.Module) -> bool:
    return module.__dict__.get("attention_type") == "block_sparse"


@contextmanager
def merged_adapters(model: nn.Module) -> Iterator[None]:
    """Add low-rank adapters to the weights that they adapt, within the block.

    What a layer adds to its output is counted by one weight, W + BA; counted for W and BA each, it
    is something else. Adapters of embeddings, and of weights that are not floats, stay as they are.
    """
    own: list[tuple[Any, nn.Module, dict[str, nn.Parameter | None]]] = []
    try:
        for module in every_module(model):
            adapter: Any = module
            if _adapts_a_weight(adapter):
                base = adapter.get_base_layer()
                own.append((adapter, base, dict(base._parameters)))
                for name, each in own[-1][2].items():  # others may share them
                    if each is not None:
                        base._parameters[name] = nn.Parameter(each.detach().clone(), False)
                adapter.merge()
        yield
    finally:
        for adapter, base, parameters in own:
            base._parameters.update(parameters)
            adapter.merged_adapters.clear()


def _adapts_a_weight(module: Any) -> bool:
    """Whether this is an adapter of PEFT that is in use and not yet part of its weight."""
    if not (hasattr(module, "merged_adapters") and hasattr(module, "get_base_layer")):
        return False
    base = module.get_base_layer()
    weight = getattr(base, "weight", None)
    is_plain = isinstance(weight, torch.Tensor) and weight.is_floating_point()
    in_use = not (module.merged_adapters or module.disable_adapters)
    return is_plain and in_use and not isinstance(base, nn.Embedding)
