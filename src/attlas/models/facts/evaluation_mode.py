"""Evaluation mode: a model is locked, without dropout and frozen; all is restored afterwards."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary, ref

import torch
from torch import nn

from attlas.errors import ModelError
from attlas.models.facts.hooks import Hooks
from attlas.models.facts.model_lock import hold
from attlas.models.loading.offloading import LightGraphs, offloaded_modules
from attlas.models.loading.planned_attention import plan_nothing
from attlas.restoring import Placed, keeps, placing


class _Use:
    """A model in use: the blocks that use it, and what it was like before the first of them."""

    def __init__(self, model: nn.Module) -> None:
        self.blocks: list[Placed] = []
        self.changes = Placed()
        self.known: dict[str, Any] = {}
        self.stamp, self.modules = _look(model)
        self.odd = [self.modules[number] for number in self.stamp.odd]
        self._training = [module for module in self.modules if module.training]
        stores = [module._parameters for module in self.modules]
        held = [each for own in stores if own for each in own.values()]
        self._trainable = [each for each in held if each is not None and each.requires_grad]
        self.offloaded = offloaded_modules(self.modules)
        # Each call of such a module makes its parameters anew.
        self._renewed = [
            (module, name)
            for module in (self.modules if self.offloaded else ())
            for name, parameter in module._parameters.items()
            if parameter is not None and parameter.requires_grad
        ]

    @property
    def is_trained(self) -> bool:
        """Whether somebody trains the model, by what it was like."""
        return bool(self._training and self._trainable)

    def stand_still(self) -> None:
        """Switch dropout off and freeze the parameters."""
        for module in self._training:
            module.training = False
        for parameter in self._trainable:
            parameter.requires_grad_(False)

    def restore(self) -> None:
        """Undo this, however much of it was done."""
        for module in self._training:
            module.training = True
        # Where Ctrl-C ends a pass inside `vmap`, that level may still be open.
        functorch: Any = torch._C._functorch
        allowed = functorch.get_inplace_requires_grad_allowed()
        functorch.set_inplace_requires_grad_allowed(True)
        try:
            renewed = [module._parameters[name] for module, name in self._renewed]
            for parameter in (*self._trainable, *(each for each in renewed if each is not None)):
                parameter.requires_grad_(True)
        finally:
            functorch.set_inplace_requires_grad_allowed(allowed)


class _Found(NamedTuple):
    """The modules of a model as they were found; see `_shape`."""

    modules: list[ref[nn.Module]]
    shape: tuple[list[int], list[type]]
    odd: list[int]  # the numbers of those that change what they are while they run


_found: WeakKeyDictionary[nn.Module, _Found] = WeakKeyDictionary()
# Changed only while the lock of the model is held.
_in_use: WeakKeyDictionary[nn.Module, _Use] = WeakKeyDictionary()
ODD = {"attention_type", "L_bp_cycles_padded"}  # attributes of BigBird's modules and of HRM's


def every_module(model: nn.Module) -> list[nn.Module]:
    """Every module once; much faster than `modules()`, and faster still if none was exchanged."""
    use = _in_use.get(model)
    return _look(model)[1] if use is None else use.modules


def stamp_of(model: nn.Module) -> object:
    """Something that stays the same object while a model has the same modules, of the same types.

    Those of a model in use are not looked at again.
    """
    use = _in_use.get(model)
    return _look(model)[0] if use is None else use.stamp


def known_in_use(model: nn.Module) -> dict[str, Any] | None:
    """What was found of the modules of a model since it is in use; None if it is not."""
    use = _in_use.get(model)
    return None if use is None else use.known


def _look(model: nn.Module) -> tuple["_Found", list[nn.Module]]:
    known = _found.get(model)
    if known is not None:
        there = [each() for each in known.modules]
        if None not in there and _shape(there) == known.shape:
            return known, there  # type: ignore[return-value]
    found: dict[nn.Module, None] = {}
    waiting: list[nn.Module | None] = [model]
    while waiting:
        module = waiting.pop()
        if module is not None and module not in found:
            found[module] = None
            waiting.extend(module._modules.values())
    modules = list(found)
    odd = [number for number, each in enumerate(modules) if not ODD.isdisjoint(each.__dict__)]
    _found[model] = _Found([ref(each) for each in modules], _shape(modules), odd)
    return _found[model], modules


def _shape(modules: Sequence[Any]) -> tuple[list[int], list[type]]:
    """The ids of the children of these modules in turn, and the types of the modules."""
    inside = [each._modules for each in modules]
    return [id(each) for own in inside if own for each in own.values()], list(map(type, modules))


@contextmanager
def evaluation_mode(model: nn.Module) -> Iterator[None]:
    """Switch dropout off, freeze the parameters and keep other threads out, within the block.

    Blocks of one thread may nest or overlap; the last to end restores the model.
    """
    with placing() as block:
        hold(model, block)
        use = _in_use.get(model)
        if use is None:
            use = _Use(model)
            block.note(partial(_leave, model, use, block))
            _enter(model, use, block)
        else:
            block.note(partial(_leave, model, use, block))
            use.blocks.append(block)
        yield


def _enter(model: nn.Module, use: _Use, block: Placed) -> None:
    """The first block of a use: everything is noted before it is changed."""
    use.blocks.append(block)
    _in_use[model] = use
    use.stand_still()
    plan_nothing(use.changes)
    _keep_sparse(model, use)
    _uncut_cycles(use)
    _refuse_training(model, use)
    if use.offloaded:
        LightGraphs(use.offloaded, use.changes)


def _leave(model: nn.Module, use: _Use, block: Placed) -> None:
    """End a block of a use; the last one restores the model."""
    if use.blocks == [block]:
        use.changes.undo()
        use.restore()
        _in_use.pop(model, None)
    if block in use.blocks:
        use.blocks.remove(block)


def _keep_sparse(model: nn.Module, use: _Use) -> None:
    """Undo, before each pass and at the end, what BigBird does to itself in a short text.

    A text that is too short for blocks makes it attend to everything from then on, also in long
    texts. Each text is to be read as a model reads it that has seen no other.
    """
    found = [(each, each._modules.get("self")) for each in use.odd if _is_sparse(each)]
    if not found:
        return

    def restore(*_: Any) -> None:
        for module, own in found:
            if not _is_sparse(module):
                module.__dict__["attention_type"] = "block_sparse"
                if own is not None:
                    module._modules["self"] = own

    use.changes.note(restore)
    use.changes.note(model.register_forward_pre_hook(restore).remove)


def _uncut_cycles(use: _Use) -> None:
    """Let gradients through all cycles of HRM until the use ends.

    To save memory in training it runs all but the last cycles without gradients. What comes out is
    the same, but a gradient would leave out most of the model.
    """
    for module in use.odd:
        cut: list[int] | None = module.__dict__.get("L_bp_cycles_padded")
        if cut is not None:
            use.changes.note(partial(setattr, module, "L_bp_cycles_padded", cut))
            own: Any = module
            own.L_bp_cycles_padded = [own.config.L_cycles] * len(cut)


def _refuse_training(model: nn.Module, use: _Use) -> None:
    """Refuse to train the model in another thread: its parameters would get no gradients."""
    if not use.is_trained:
        return

    def refuse(called: nn.Module, *_: Any) -> None:
        if called is not model:  # a copy that was made meanwhile has this hook too
            return
        if torch.is_grad_enabled() and not any(block.is_here for block in use.blocks):
            raise ModelError(
                "this model stands still while another thread explains it: take turns by "
                "`with subject.held():` around each step of the training, or explain a copy"
            )

    Hooks(use.changes).before_any(model, refuse)


def _gradients_as_now() -> Callable[[], object]:
    return partial(torch.set_grad_enabled, torch.is_grad_enabled())


def _transforms_as_now() -> Callable[[], object]:
    """The open transforms of functions: `vmap` opens one before the block that would close it."""
    functorch: Any = torch._C._functorch
    depth = functorch.get_dynamic_layer_stack_depth()

    def close() -> None:  # one by one: torch 2.11 closes two at once, also one that is not ours
        while functorch.get_dynamic_layer_stack_depth() > depth:
            kind = functorch.peek_interpreter_stack().key().name  # Vmap, Grad, Jvp, Functionalize
            getattr(functorch, f"_{kind[:4].lower()}_decrement_nesting")()

    return close


keeps(_gradients_as_now)
keeps(_transforms_as_now)


def _is_sparse(module: nn.Module) -> bool:
    return module.__dict__.get("attention_type") == "block_sparse"


@contextmanager
def merged_adapters(model: nn.Module) -> Iterator[None]:
    """Add low-rank adapters to the weights that they adapt, within the block.

    What a layer adds to its output is counted by one weight, W + BA; counted for W and BA each, it
    is something else. Adapters of embeddings, and of weights that are not floats, stay as they are.
    """
    with placing() as block:
        for module in every_module(model):
            adapter: Any = module
            if _adapts_a_weight(adapter):
                base = adapter.get_base_layer()
                own = dict(base._parameters)
                block.note(adapter.merged_adapters.clear)
                block.note(partial(base._parameters.update, own))
                for name, each in own.items():  # others may share them
                    if each is not None:
                        base._parameters[name] = nn.Parameter(each.detach().clone(), False)
                adapter.merge()
        yield


def _adapts_a_weight(module: Any) -> bool:
    """Whether this is an adapter of PEFT that is in use and not yet part of its weight."""
    if not (hasattr(module, "merged_adapters") and hasattr(module, "get_base_layer")):
        return False
    base = module.get_base_layer()
    weight = getattr(base, "weight", None)
    is_plain = isinstance(weight, torch.Tensor) and weight.is_floating_point()
    in_use = not (module.merged_adapters or module.disable_adapters)
    return is_plain and in_use and not isinstance(base, nn.Embedding)
