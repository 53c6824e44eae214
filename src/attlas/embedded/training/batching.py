"""Batches for the small models trained here: rows of similar length, filled up to the longest."""

from collections.abc import Iterator, Sequence
from random import Random

import torch
from torch import Tensor

from attlas.embedded.training.sentiment_tokenizer import PAD


def padded(rows: Sequence[list[int]]) -> dict[str, Tensor]:
    """Rows of ids as one batch."""
    longest = max(map(len, rows))
    ids = torch.tensor([row + [PAD] * (longest - len(row)) for row in rows])
    return {"input_ids": ids, "attention_mask": (ids != PAD).long()}


def batches(lengths: Sequence[int], size: int, random: Random) -> Iterator[list[int]]:
    """Indices in random batches of similar length, without end."""
    while True:
        order = sorted(range(len(lengths)), key=lambda index: (lengths[index], random.random()))
        starts = list(range(0, len(order) - size + 1, size))
        random.shuffle(starts)
        yield from (order[start : start + size] for start in starts)
