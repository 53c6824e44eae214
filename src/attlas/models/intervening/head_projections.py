"""The linear maps of an attention module, found by their usual names, and how to cut heads out."""

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from transformers.pytorch_utils import Conv1D

from attlas.errors import UnsupportedModelError, UsageError

_QUERIES = ("query", "q_proj", "q_lin", "q", "q_attn")
_KEYS = ("key", "k_proj", "k_lin", "k")
_VALUES = ("value", "v_proj", "v_lin", "v")
_JOINED = ("c_attn",)  # keys and values in one, with the queries in self-attention
_OUTPUTS = ("o_proj", "out_proj", "out_lin", "o", "c_proj", "dense")
_WIDTHS = ("head_dim", "attention_head_size", "key_value_proj_dim")
_HEADS = ("num_attention_heads", "num_heads", "n_heads", "n_head", "num_attn_heads")
_SHARED_HEADS = ("num_key_value_heads",)
_FEATURES = ("all_head_size", "inner_dim", "split_size")


@dataclass(frozen=True, eq=False)
class HeadProjections:
    """The projections into the heads of an attention, and the one out of them."""

    module: nn.Module  # the attention module
    path: str
    heads: int
    shared: int  # heads of keys and values; fewer than `heads` if groups of heads share them
    width: int
    of_heads: tuple[nn.Module, ...]  # with one or more output slices for each head
    of_groups: tuple[nn.Module, ...]  # with an output slice for each head of keys and values
    output: nn.Module

    def remove(self, heads: Collection[int]) -> None:
        """Cut these heads out of the weights, and update the module's own counts."""
        kept = [head for head in range(self.heads) if head not in heads]
        kept_groups = self._kept_groups(kept)
        for projection in self.of_heads:
            _keep_outputs(projection, _features(kept, self.heads, self.width, projection))
        for projection in self.of_groups:
            _keep_outputs(projection, _features(kept_groups, self.shared, self.width, projection))
        _keep_inputs(self.output, _slices(kept, self.width))
        bias = getattr(self.module, "relative_attention_bias", None)
        if isinstance(bias, nn.Embedding):
            bias.weight = _kept(bias.weight, 1, torch.tensor(kept))
            bias.embedding_dim = len(kept)
        _update_count(self.module, _HEADS, self.heads, len(kept))
        _update_count(self.module, _SHARED_HEADS, self.shared, len(kept_groups))
        _update_count(self.module, _FEATURES, self.heads * self.width, len(kept) * self.width)

    def _kept_groups(self, kept: Collection[int]) -> list[int]:
        """The heads of keys and values that stay; raises if only some of a group are removed."""
        size = self.heads // self.shared
        groups = [range(group * size, (group + 1) * size) for group in range(self.shared)]
        torn = [group for group in groups if 0 < len(set(group) & set(kept)) < size]
        if torn:
            raise UsageError(
                f"heads {_listed(set(torn[0]) - set(kept))} of {self.path} share their keys and "
                f"values with {_listed(set(torn[0]) & set(kept))}: such heads can only be "
                f"removed together; the groups are {_listed(map(_listed, groups), '; ')}"
            )
        return [number for number, group in enumerate(groups) if set(group) & set(kept)]


def find_projections(model: nn.Module, path: str) -> HeadProjections:
    """The projections of the attention module at a path; raises if they are not found."""
    module = model.get_submodule(path)
    several = _named(module, _JOINED)
    of_heads = [*_named(module, _QUERIES), *several]
    of_groups = [*_named(module, _KEYS), *_named(module, _VALUES)]
    outputs = _named(module, _OUTPUTS) or _beside(model, path)
    width = next((getattr(module, name) for name in _WIDTHS if hasattr(module, name)), 0)
    whole = bool(several) if not of_groups else len(of_groups) == 2
    if not (of_heads and whole and len(outputs) == 1 and width):
        raise UnsupportedModelError(_unknown(module))
    heads = _size(outputs[0], "in") // width
    shared = _size(of_groups[0], "out") // width if of_groups else heads
    found = HeadProjections(
        module, path, heads, shared, width, tuple(of_heads), tuple(of_groups), outputs[0]
    )
    if not _fits(found):
        raise UnsupportedModelError(_unknown(module))
    return found


def _fits(found: HeadProjections) -> bool:
    """Whether the width of every projection fits the heads."""
    features, groups = found.heads * found.width, found.shared * found.width
    return (
        features == _size(found.output, "in")
        and all(_size(each, "out") % features == 0 for each in found.of_heads)
        and all(_size(each, "out") == groups for each in found.of_groups)
        and found.heads % found.shared == 0
    )


def _named(module: nn.Module, names: Collection[str]) -> list[nn.Module]:
    # Replacements by quantisation or adapter libraries store their weights differently.
    found: list[Any] = [getattr(module, name, None) for name in names]
    return [each for each in found if type(each) in (nn.Linear, Conv1D)]


def _beside(model: nn.Module, path: str) -> list[nn.Module]:
    """The output projection beside the module, where BERT has it."""
    parent = model.get_submodule(path.rpartition(".")[0])
    beside = getattr(parent, "output", None)
    return _named(beside, ("dense",)) if isinstance(beside, nn.Module) else []


def _unknown(module: nn.Module) -> str:
    inside = ", ".join(name for name, _ in module.named_children())
    return (
        f"heads cannot be removed from {type(module).__name__}: its modules ({inside or 'none'}) "
        "are not the known projections of queries, keys, values and output; a with block can "
        "switch its heads off"
    )


def _size(module: nn.Module, side: str) -> int:
    """The number of input (`in`) or output (`out`) features of a linear map."""
    out_first = isinstance(module, nn.Linear)
    weight: Any = module.weight
    return int(weight.shape[0 if out_first == (side == "out") else 1])


def _features(kept: Collection[int], count: int, width: int, projection: nn.Module) -> Tensor:
    """Which outputs of a projection belong to the heads that stay; it may have several blocks."""
    blocks = _size(projection, "out") // (count * width)
    return _slices([block * count + head for block in range(blocks) for head in kept], width)


def _slices(numbers: Collection[int], width: int) -> Tensor:
    return (torch.tensor(list(numbers))[:, None] * width + torch.arange(width)).flatten()


def _keep_outputs(module: Any, index: Tensor) -> None:
    is_linear = isinstance(module, nn.Linear)
    module.weight = _kept(module.weight, 0 if is_linear else 1, index)
    if module.bias is not None:
        module.bias = _kept(module.bias, 0, index)
    setattr(module, "out_features" if is_linear else "nf", len(index))


def _keep_inputs(module: Any, index: Tensor) -> None:
    is_linear = isinstance(module, nn.Linear)
    module.weight = _kept(module.weight, 1 if is_linear else 0, index)
    setattr(module, "in_features" if is_linear else "nx", len(index))


def _kept(parameter: Any, axis: int, index: Tensor) -> nn.Parameter:
    cut = parameter.detach().index_select(axis, index.to(parameter.device))
    return nn.Parameter(cut, requires_grad=parameter.requires_grad)


def _update_count(module: nn.Module, names: Iterable[str], before: int, after: int) -> None:
    for name in names:
        if getattr(module, name, None) == before:
            setattr(module, name, after)


def _listed(numbers: Iterable[Any], between: str = ", ") -> str:
    return between.join(str(each) for each in numbers)
