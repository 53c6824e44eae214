"""Effective attention, against a loop over single heads.

The loop gets the attention and the values of every layer for nothing. It computes the full
decomposition of each head's values in float64 and removes the part of the attention in their left
null space, as the method's published code does for a head. The inner function does the same work.
"""

from collections.abc import Iterator
from functools import partial

import torch
from comparing import Row, Setup, largest_difference
from shapes import bert, ids_of, texts_of
from torch import Tensor

import attlas
from attlas.mathematics.effective_weights import effective_weights
from attlas.mathematics.null_space import rounding

Layer = tuple[Tensor, Tensor]  # attention `[1, head, token, token]`, values `[1, head, token, w]`


def compare(setup: Setup) -> Iterator[Row]:
    tokens = setup.size(256, 80)
    subject = bert(setup.device, layers=setup.size(12, 1))
    (text,) = texts_of(subject, [tokens])
    layers = _read(subject, text)
    work = partial(attlas.explain, subject, text, "effective_attention")
    ours, behind, peer = setup.in_turns(
        work, partial(_ours, layers), partial(_loop, layers), rounds=1
    )
    off = largest_difference(_ours(layers), _loop(layers))
    what = f"`effective_attention`, {tokens} tokens"
    yield Row(what, "a loop of single decompositions", ours, peer, behind, off, "of a weight")


@torch.no_grad()
def _read(subject: attlas.Subject, text: str) -> list[Layer]:
    values: list[Tensor] = []
    model = subject.model
    hooks = [
        layer.attention.self.value.register_forward_hook(lambda *given: values.append(given[2]))
        for layer in model.bert.encoder.layer
    ]
    own = model.config._attn_implementation
    model.set_attn_implementation("eager")
    maps = model(input_ids=ids_of(subject, text), output_attentions=True).attentions
    model.set_attn_implementation(own)
    for hook in hooks:
        hook.remove()
    heads = [each.unflatten(-1, (-1, 64)).transpose(1, 2) for each in values]
    return list(zip(maps, heads, strict=True))


def _ours(layers: list[Layer]) -> list[Tensor]:
    size, device = layers[0][0].shape[-1], layers[0][0].device
    visible = torch.ones(1, 1, size, size, dtype=torch.bool, device=device)
    return [effective_weights(weights, values, visible) for weights, values in layers]


def _loop(layers: list[Layer]) -> list[Tensor]:
    return [
        torch.stack([_one_head(a, v) for a, v in zip(weights[0], values[0], strict=True)])[None]
        for weights, values in layers
    ]


def _one_head(weights: Tensor, values: Tensor) -> Tensor:
    left, singular, _ = torch.linalg.svd(values.double(), full_matrices=True)
    rank = int((singular > rounding(values) * singular.max()).sum())
    null = left[:, rank:]
    wide = weights.double()
    return wide - (wide @ null) @ null.T
