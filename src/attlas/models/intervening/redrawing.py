"""Redrawing: replace the weights of one storey of a model by random ones, and restore them.

A storey is a block with everything that runs between it and the next block. Below the lowest block
are the embeddings, above the highest is the head. The order of calls shows where a module belongs.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any
from zlib import crc32

import numpy as np
import torch
from torch import Tensor, nn

from attlas.errors import UnsupportedModelError
from attlas.models.asking.open_model import OpenModel
from attlas.models.encoding.encode_input import sample_inputs
from attlas.models.facts.evaluation_mode import evaluation_mode
from attlas.models.facts.hooks import hooking
from attlas.models.facts.sites import find_block
from attlas.models.loading.offloading import check_changeable
from attlas.restoring import placing

HEAD, EMBEDDINGS = "head", "embeddings"


@dataclass(frozen=True, eq=False)
class Storey:
    """Weights that are redrawn together, each with its name in the model."""

    name: str  # embeddings, block 0, block 1, …, head
    weights: tuple[tuple[str, nn.Parameter], ...]


def find_storeys(subject: OpenModel) -> list[Storey]:
    """The storeys of a model that have weights, from the bottom.

    A weight that is used twice, such as a tied embedding table, belongs to the lower storey.
    """
    check_changeable(subject.model, "drawing weights anew")
    paths = [path for _, path in subject.places]
    blocks = list(dict.fromkeys(find_block(subject.model, path) for path in paths))
    level = _levels(subject, blocks)
    lowest: dict[int, int] = {}
    named: dict[int, tuple[str, nn.Parameter]] = {}
    for path, module in subject.model.named_modules():
        for name, weight in module.named_parameters(path, recurse=False):
            lowest[id(weight)] = min(level[module], lowest.get(id(weight), level[module]))
            named.setdefault(id(weight), (name, weight))
    names = [EMBEDDINGS, *(f"block {number}" for number in range(len(blocks))), HEAD]
    storeys = [
        Storey(name, tuple(named[each] for each, own in lowest.items() if own == number))
        for number, name in enumerate(names)
    ]
    return [storey for storey in storeys if storey.weights]


def _levels(subject: OpenModel, blocks: list[nn.Module]) -> dict[nn.Module, int]:
    """The storey of each module: 0 below the blocks, then one for each block, then the head."""
    begun: list[nn.Module] = []
    first: dict[nn.Module, int] = {}

    def note(module: nn.Module, _: Any) -> None:
        if module in blocks and module not in begun:
            begun.append(module)
        first.setdefault(module, len(begun))

    inputs = sample_inputs(subject)
    with evaluation_mode(subject.model), torch.no_grad(), hooking() as hooks:
        for module in subject.model.modules():
            hooks.before(module, note)
        subject.run(inputs.arguments)
    level = {module: _storey_of(first.get(module, 0), len(blocks)) for module in _all(subject)}
    for number, block in enumerate(begun):
        level.update(dict.fromkeys(block.modules(), number + 1))
    return level


def _all(subject: OpenModel) -> list[nn.Module]:
    return list(subject.model.modules())


def _storey_of(begun: int, blocks: int) -> int:
    """The storey of a module outside the blocks, first called after `begun` of them."""
    return begun + 1 if begun == blocks else begun


@contextmanager
def redrawn(subject: OpenModel, storey: Storey, seed: int) -> Iterator[None]:
    """Replace the weights of a storey by random ones within the block.

    Each is drawn from a normal distribution with the mean and spread of the weight; equal seeds
    draw equal weights. The original tensors are not written to, so they return bit for bit.
    """
    with evaluation_mode(subject.model), placing() as placed:
        for name, weight in storey.weights:
            drawn = _draw(name, weight, seed)
            placed.note(partial(setattr, weight, "data", weight.data))
            weight.data = drawn
        yield


def _draw(name: str, weight: nn.Parameter, seed: int) -> Tensor:
    if not weight.is_floating_point():
        raise UnsupportedModelError(f"{name} is {weight.dtype}: such weights cannot be redrawn")
    own = weight.detach().double()
    state = np.random.SeedSequence([seed, crc32(name.encode())]).generate_state(1, np.uint64)[0]
    generator = torch.Generator().manual_seed(int(state))
    noise = torch.randn(own.shape, generator=generator).to(weight.device)  # the same on any device
    return (own.mean() + own.std(correction=0) * noise).to(weight.dtype)
