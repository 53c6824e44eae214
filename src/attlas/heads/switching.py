"""Heads switched off, other ones in every copy of a text: which copies are answered rightly."""

from collections.abc import Iterator, Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from attlas.heads.gold import are_right
from attlas.models.asking.memory import in_fitting_batches, rows_of
from attlas.models.asking.question import Question
from attlas.models.tap.edits import Edit, scale
from attlas.shapes import HeadSwitches


def right_with(question: Question, left: HeadSwitches) -> NDArray[np.float32]:
    """Which rows are answered rightly with the heads that are left, `[set, row]`.

    The heads of all sites stand one after the other. A set is for all rows, or has some for each.
    """
    length = len(question.inputs.tokens[0]) * len(question)
    most = rows_of(question.subject.device, length)

    def run(numbers: Sequence[int]) -> Tensor:
        own = left[list(numbers)].expand(-1, len(question), -1).flatten(0, 1)
        copies = question.rows([*range(len(question))] * len(numbers))
        return are_right(copies, [*_edits(copies, own)]).view(len(numbers), -1)

    parts: list[Tensor] = []
    for start in range(0, len(left), most):
        numbers = range(start, min(start + most, len(left)))
        parts += in_fitting_batches(numbers, run, "one text does not fit")
    return torch.cat(parts).cpu().numpy()


def _edits(question: Question, left: Tensor) -> Iterator[Edit]:
    """In each row its own heads, `[row, head]`, at all sites one after the other."""
    factors = left[:, :, None, None].to(question.subject.device)
    start = 0
    for site in question.subject.sites:
        own = factors[:, start : start + site.heads]
        start += site.heads
        if not bool(left[:, start - site.heads : start].all()):
            yield scale(own).at(kind=site.kind, layer=site.layer)
