"""Blocks: the layers of a model, and the batch axis of everything that goes in and out of them.

A block is an element of the outermost `ModuleList` above an attention module, or of the innermost
where the outer one is a list of stages, each a stack of its own. Besides the hidden states,
families pass different things to a block (masks, rotary tables, position biases, encoder states).
Running the model on two rows and on three shows which of them have a batch axis.
"""

from collections import UserDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias
from weakref import WeakKeyDictionary

import torch
from torch import Tensor, nn

from attlas.errors import UnsupportedModelError
from attlas.models.asking.open_model import OpenModel
from attlas.models.encoding.inputs import Inputs
from attlas.models.facts.hooks import hooking
from attlas.models.facts.sites import BLOCK_LISTS
from attlas.models.facts.stages import has_stages

Path = tuple[Any, ...]
BlockList: TypeAlias = nn.ModuleList | nn.Sequential
Axis = tuple[int, int]  # the batch axis, and the number of entries for each row


@dataclass(frozen=True)
class BlockCall:
    """One call of a block: its stack, the batch axes of its inputs and outputs, its sites.

    Tensors without a batch axis have None; tensors that are not named did not occur.
    """

    stack: int
    going_in: dict[Path, Axis | None]
    coming_out: dict[Path, Axis | None]
    sites: tuple[str, ...]


def find_stacks(model: nn.Module, owner_paths: Sequence[str]) -> list[BlockList]:
    """The lists of blocks that contain the model's attention, in the order of call."""
    stacks: dict[int, BlockList] = {}
    for path in owner_paths:
        stack = _stage_list(model, path) if has_stages(model) else _outermost_list(model, path)
        stacks.setdefault(id(stack), stack)
    return list(stacks.values())


def _stage_list(model: nn.Module, path: str) -> BlockList:
    """The list of the blocks of one stage; the block may be what owns the attention."""
    modules = [model]
    for part in path.split("."):
        modules.append(modules[-1].get_submodule(part))
    return next(each for each in reversed(modules) if isinstance(each, BLOCK_LISTS))


def _outermost_list(model: nn.Module, path: str) -> BlockList:
    module = model
    parts = path.split(".")
    for number, part in enumerate(parts, 1):
        if isinstance(module, nn.ModuleList) and number == len(parts):
            raise UnsupportedModelError(
                f"{type(model).__name__} cannot be run block by block: its attention modules are "
                f"in a list of their own ({path}), apart from the rest of their layers"
            )
        if isinstance(module, nn.ModuleList):
            return module
        module = module.get_submodule(part)
    raise UnsupportedModelError(
        f"{type(model).__name__} cannot be run block by block: its attention at {path} is in no "
        "list of layers"
    )


_studied: WeakKeyDictionary[OpenModel, dict[Any, list[BlockCall]]] = WeakKeyDictionary()


def study_blocks(subject: OpenModel, inputs: Inputs) -> list[BlockCall]:
    """The block calls of one forward pass on inputs of this shape, in order."""
    if inputs.picture is not None:
        raise UnsupportedModelError(
            f"{subject.name} cannot be run block by block: text and picture have separate stacks"
        )
    studied = _studied.setdefault(subject, {})
    if inputs.shape not in studied:
        studied[inputs.shape] = _study(subject, inputs)
    return studied[inputs.shape]


def _study(subject: OpenModel, inputs: Inputs) -> list[BlockCall]:
    stacks = find_stacks(subject.model, [path for _, path in subject.places])
    two, three = (_watch_blocks(subject, inputs.rows([0] * count), stacks) for count in (2, 3))
    if len(two) != len(three) or not two:
        raise UnsupportedModelError(
            f"{subject.name} cannot be run block by block: its attention is in no plain list of "
            "layers that run one after the other"
        )
    return [
        BlockCall(
            stack,
            _axes(going_in, others[1]),
            _axes(coming_out, others[2]),
            sites,
        )
        for (stack, going_in, coming_out, sites), others in zip(two, three, strict=True)
    ]


def _watch_blocks(
    subject: OpenModel, inputs: Inputs, stacks: Sequence[BlockList]
) -> list[tuple[int, dict[Path, Any], dict[Path, Any], tuple[str, ...]]]:
    calls: list[Any] = []

    def hook(number: int, seen: Any) -> Callable[..., None]:
        def note(_: nn.Module, args: Any, kwargs: Any, output: Any) -> None:
            sites = tuple(site.name for site in seen.sites[sum(len(c[3]) for c in calls) :])
            going_in = _shapes((args, to_run_again(kwargs)))
            calls.append((number, going_in, _shapes(output), sites))

        return note

    with torch.no_grad(), subject.tap() as seen, hooking() as hooks:
        for number, blocks in enumerate(stacks):
            for block in blocks:
                hooks.after(block, hook(number, seen), with_kwargs=True)
        subject.run(inputs.arguments)
    return calls


def _shapes(tree: Any) -> dict[Path, tuple[int, ...]]:
    found: dict[Path, tuple[int, ...]] = {}
    map_tensors(tree, lambda path, tensor: found.setdefault(path, tuple(tensor.shape)) and tensor)
    return found


def _axes(two: dict[Path, Any], three: dict[Path, Any]) -> dict[Path, Axis | None]:
    """The axis where the shapes for two rows and for three differ, and its entries for each row."""
    axes: dict[Path, Axis | None] = dict.fromkeys(two)
    for path, shape in two.items():
        pairs = enumerate(zip(shape, three.get(path, shape), strict=True))
        for axis, (small, large) in pairs:
            if small != large and small % 2 == 0 and large == small // 2 * 3:
                axes[path] = (axis, small // 2)
    return axes


def to_run_again(kwargs: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments of a call, fit for another one.

    A cache is left out: a second run would attend to the keys of the first. States that layers
    share (Gemma 4) are copied, so that the second run does not write into those of other layers.
    """
    return {
        name: dict(value) if isinstance(value, UserDict) else value
        for name, value in kwargs.items()
        if not hasattr(value, "get_seq_length")
    }


def map_tensors(tree: Any, change: Callable[[Path, Tensor], Any], path: Path = ()) -> Any:
    """A copy of a tree of tuples, lists and dictionaries with every tensor changed."""
    if isinstance(tree, Tensor):
        return change(path, tree)
    if isinstance(tree, dict):
        changed = {key: map_tensors(each, change, (*path, key)) for key, each in tree.items()}
        return changed if type(tree) is dict else type(tree)(**changed)
    if isinstance(tree, tuple) and hasattr(tree, "_fields"):
        return type(tree)(*(map_tensors(each, change, (*path, i)) for i, each in enumerate(tree)))
    if isinstance(tree, (tuple, list)):
        return type(tree)(map_tensors(each, change, (*path, i)) for i, each in enumerate(tree))
    return tree


def take_rows(tensor: Tensor, axis: Axis | None, index: Tensor) -> Tensor:
    """The rows of a tensor that `index` names; the tensor itself if it has no batch axis."""
    if axis is None:
        return tensor
    place, entries = axis
    apart: Tensor = tensor.unflatten(place, (-1, entries))
    return apart.index_select(place, index).flatten(place, place + 1)
