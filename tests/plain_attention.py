"""Transformers' own eager attention with changed weights, without Attlas."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count
from unittest.mock import patch

import torch
from torch import Tensor

real = torch.nn.functional.softmax


@contextmanager
def changed(change: Callable[[int, Tensor], Tensor]) -> Iterator[None]:
    """Inside the block, `change(layer, weights)` replaces the attention weights."""
    layers = count()

    def softmax(scores: Tensor, *args: object, **options: object) -> Tensor:
        weights = real(scores, *args, **options)
        return change(next(layers), weights) if scores.ndim == 4 else weights

    with patch("torch.nn.functional.softmax", softmax):
        yield


def without(weights: Tensor, row: int, free: list[int], gone: set[int]) -> Tensor:
    """One row of every head without weight on some keys; the other free keys grow instead."""
    new = weights.clone()
    for head in range(weights.shape[1]):
        mass = sum(float(weights[0, head, row, key]) for key in free)
        rest = sum(float(weights[0, head, row, key]) for key in free if key not in gone)
        for key in free:
            stays = key not in gone and rest > 0
            new[0, head, row, key] = weights[0, head, row, key] * mass / rest if stays else 0
    return new
