"""Whether a model answers with the gold label, with all heads or with some switched off."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from attlas.models.asking.memory import in_fitting_batches, rows_of
from attlas.models.asking.question import Question
from attlas.models.asking.scores import run_logits
from attlas.models.encoding.target import Target
from attlas.models.tap.edits import Edit, scale
from attlas.shapes import BatchScores, HeadSwitches


@dataclass(frozen=True)
class CorrectAnswer(Target):
    """A target whose score is 1 if the model chooses it and 0 if not."""

    def score(self, logits: Tensor, of: str) -> Tensor:
        """The score of each row of outputs, `[…, place, choice]`."""
        places, choices = zip(*self.picks, strict=True)
        chosen = logits[..., list(places), :].argmax(dim=-1)
        correct = torch.tensor(choices, device=logits.device)
        return (chosen == correct).all(dim=-1).float()


def ask_whether_correct(question: Question) -> Question:
    """The same question, scored by whether the model chooses the target."""
    targets = tuple(CorrectAnswer(**vars(each)) for each in question.targets)
    return question.asking(targets)


def are_correct(question: Question, edits: Sequence[Edit] = ()) -> BatchScores:
    """Which rows the model answers with their target, as 1 or 0, with these edits of attention."""
    with torch.no_grad(), question.subject.tap(edits, sites=()):
        logits = run_logits(question)
    picks = torch.tensor([target.picks for target in question.targets], device=logits.device)
    rows = torch.arange(len(logits), device=logits.device)[:, None]
    chosen = logits[rows, picks[..., 0]].argmax(dim=-1)
    return (chosen == picks[..., 1]).all(dim=-1).float()


def correct_with_heads(question: Question, heads: HeadSwitches) -> NDArray[np.float32]:
    """Which rows are answered correctly with only these heads switched on, `[set, row]`.

    The heads of all sites follow one another. A set serves all rows, or has one entry for each.
    """
    length = len(question.inputs.tokens[0]) * len(question)
    most = rows_of(question.subject.device, length)

    def run(numbers: Sequence[int]) -> Tensor:
        own = heads[list(numbers)].expand(-1, len(question), -1).flatten(0, 1)
        copies = question.rows([*range(len(question))] * len(numbers))
        return are_correct(copies, [*_edits(copies, own)]).view(len(numbers), -1)

    answers: list[Tensor] = []
    for start in range(0, len(heads), most):
        numbers = range(start, min(start + most, len(heads)))
        answers += in_fitting_batches(numbers, run, "one text does not fit", "pruned copies")
    return torch.cat(answers).cpu().numpy()


def _edits(question: Question, heads: Tensor) -> Iterator[Edit]:
    """Edits that leave each row its own heads, `[row, head]`, the sites following one another."""
    factors = heads[:, :, None, None].to(question.subject.device)
    start = 0
    for site in question.subject.sites:
        own = factors[:, start : start + site.heads]
        start += site.heads
        if not bool(heads[:, start - site.heads : start].all()):
            yield scale(own).at(kind=site.kind, layer=site.layer)
