"""The row that a classifier reads its answer from, found by gradient, once for a training."""

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn

from attlas.errors import UnsupportedModelError
from attlas.models.asking.readout import shares
from attlas.models.facts.anatomy import anatomy
from attlas.models.facts.evaluation_mode import evaluation_mode
from attlas.models.facts.hooks import hooking
from attlas.models.facts.sites import find_block
from attlas.shapes import QueryWeights, TokenKinds

FIRST, LAST, ALL = "first", "last", "all"  # tokens of a text


def find_reading_row(model: nn.Module, arguments: Mapping[str, Tensor]) -> str:
    """Which tokens the answer is read from: the first, the last, or all of them.

    The output of the last block is asked for its gradient on one text, without what fills it up.
    """
    mask = arguments.get("attention_mask")
    length = arguments["input_ids"].shape[1] if mask is None else int(mask[0].sum())
    one = {name: value[:1, :length] for name, value in arguments.items()}
    block = find_block(model, anatomy(model).owners[-1].path)
    held: list[Tensor] = []

    def keep(_module: Any, _arguments: Any, output: Any) -> None:
        stream = output if isinstance(output, Tensor) else output[0]
        stream.requires_grad or stream.requires_grad_()
        held.append(stream)

    with hooking() as hooks, evaluation_mode(model), torch.enable_grad():
        hooks.after(block, keep)
        total = model(**one).logits.float().sum()
        (slope,) = torch.autograd.grad(total, held[-1:], materialize_grads=True)
    read = (shares(slope)[0] > 0).nonzero().flatten().tolist()
    if not read:
        raise UnsupportedModelError(
            f"{type(model).__name__} reads its answer from none of its tokens: it has no row to "
            "train"
        )
    if len(read) > 1:
        return ALL
    return FIRST if read == [0] else LAST


def reading_weights(rule: str, seen: TokenKinds) -> QueryWeights:
    """The share of each token in the reading, `[batch, query]`; `seen` are those of the texts."""
    if rule == ALL:
        marks = seen.float()
    else:
        places = torch.arange(seen.shape[1], device=seen.device).expand_as(seen)
        far = places.masked_fill(~seen, -1).amax(dim=1, keepdim=True)
        near = places.masked_fill(~seen, seen.shape[1]).amin(dim=1, keepdim=True)
        marks = (places == (near if rule == FIRST else far)).float()
    return marks / marks.sum(dim=1, keepdim=True).clamp_min(1)
