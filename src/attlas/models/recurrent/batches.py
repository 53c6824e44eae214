"""Batches: texts as one table of ids on the device, drawn in buckets of near lengths."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from attlas.tokens import Span, marks_of

NOISE = 0.1  # by which share lengths are changed before texts are sorted by them


@dataclass(frozen=True, eq=False)
class Batch:
    """Some texts: their arguments, their labels, and their numbers among all texts."""

    input_ids: Tensor
    attention_mask: Tensor
    token_type_ids: Tensor
    labels: Tensor
    numbers: Tensor
    marks: Tensor | None = None  # of words that people marked

    @property
    def arguments(self) -> dict[str, Tensor]:
        """The arguments of the model."""
        return {
            "input_ids": self.input_ids,
            "attention_mask": self.attention_mask,
            "token_type_ids": self.token_type_ids,
        }


@dataclass(frozen=True, eq=False)
class TextTable:
    """Texts as tables on one device, filled up to the longest, and their labels."""

    ids: Tensor
    types: Tensor
    labels: Tensor
    lengths: list[int]
    pad: int
    marks: Tensor | None = None  # ones for words that people marked, if some text has any

    def __len__(self) -> int:
        return len(self.lengths)

    def batch(self, rows: Sequence[int]) -> Batch:
        """These texts, no longer than the longest of them."""
        most = max(self.lengths[row] for row in rows)
        index = torch.as_tensor(list(rows), dtype=torch.long, device=self.ids.device)
        ids = self.ids[index, :most]
        mask = (ids != self.pad).long()
        marks = None if self.marks is None else self.marks[index, :most]
        return Batch(ids, mask, self.types[index, :most], self.labels[index], index, marks)

    def in_order(self, size: int) -> Iterator[Batch]:
        """All texts, the shortest first."""
        order = sorted(range(len(self)), key=lambda row: self.lengths[row])
        return (self.batch(order[at : at + size]) for at in range(0, len(order), size))

    def drawn(self, size: int, seed: Sequence[int]) -> list[list[int]]:
        """The rows of each batch of one epoch: near lengths together, batches in random order."""
        random = np.random.default_rng(seed)
        noisy = np.array(self.lengths) * random.uniform(1 - NOISE, 1 + NOISE, len(self))
        order = np.argsort(noisy, kind="stable").tolist()
        chunks = [order[at : at + size] for at in range(0, len(order), size)]
        return [chunks[place] for place in random.permutation(len(chunks))]


def text_table(
    tokenizer: Any,
    texts: Sequence[Any],
    labels: Sequence[int] | Sequence[Sequence[int]],
    device: str | torch.device = "cpu",
    spans: Mapping[Any, Sequence[Span]] | None = None,
) -> TextTable:
    """Tokenize texts, each a string or a pair of strings; one that is too long is cut.

    `spans` are the characters that people marked, by text; in a pair, they lie in the second one.
    """
    columns = (list(texts),) if isinstance(texts[0], str) else zip(*texts, strict=True)
    found = tokenizer(
        *map(list, columns),
        truncation=True,
        return_token_type_ids=True,
        padding=False,
        return_offsets_mapping=bool(spans),
    )
    lengths = [len(ids) for ids in found["input_ids"]]
    ids = np.full((len(lengths), max(lengths)), tokenizer.pad_token_id, dtype=np.int64)
    types = np.zeros_like(ids)
    for row, length in enumerate(lengths):
        ids[row, :length] = found["input_ids"][row]
        types[row, :length] = found["token_type_ids"][row]
    marks = np.zeros(ids.shape, dtype=np.float32) if spans else None
    if marks is not None and spans:
        for row, length in enumerate(lengths):
            last = 0 if isinstance(texts[row], str) else 1
            own = [
                place if part == last else None
                for place, part in zip(
                    found["offset_mapping"][row], found.sequence_ids(row), strict=True
                )
            ]
            marks[row, :length] = marks_of(own, spans.get(texts[row], ()))
    return TextTable(
        torch.from_numpy(ids).to(device),
        torch.from_numpy(types).to(device),
        torch.as_tensor(list(labels), dtype=torch.long, device=device),
        lengths,
        tokenizer.pad_token_id,
        None if marks is None else torch.from_numpy(marks).to(device),
    )
