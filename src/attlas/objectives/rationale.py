"""Rationale: the attention that the answer is read by follows the words that people marked."""

import torch

from attlas.objectives.support.objective import check_word_of, objective
from attlas.objectives.support.sites import READOUT, Chosen, chosen_calls, read_rows
from attlas.objectives.support.step import TrainingStep
from attlas.shapes import BatchScores, ReadRows, TokenScores

DIVERGENCES = ("kl", "cross_entropy")


@objective(
    paper="Mathew et al. 2021, arXiv:2012.10289",
    reading="The attention that the answer is read by lies on the words that people marked.",
    does_not_show="That the model uses the marked words: attention can be taught to look right.",
    needs=("attention", "marks"),
)
def rationale(
    step: TrainingStep,
    *,
    layer: Chosen = -1,
    head: Chosen = "all",
    rows: str = READOUT,
    divergence: str = "kl",
) -> BatchScores:
    """Compare the marked words, as a distribution, with the attention, a mean over heads.

    The attention is a distribution already and is not put through another softmax. A text without
    marked words has a value of zero.

    Args:
        layer: Which layers, from the front or, below zero, the back; several with /, or all.
        head: Which heads, in the same way.
        rows: `readout`, the rows that the answer is read from, or `all`.
        divergence: `kl` or `cross_entropy`; their gradients are the same.
    """
    check_word_of("rationale", "divergence", divergence, DIVERGENCES)
    marks = step.needed_marks("rationale")
    found = [
        divergence_of(marks, read_rows(step, "rationale", call, rows, head), divergence)
        for call in chosen_calls(step, "rationale", layer)
    ]
    return torch.stack(found).mean(dim=0)


def divergence_of(marks: TokenScores, attention: ReadRows, divergence: str) -> BatchScores:
    """−Σ r log ā, and with `kl` also Σ r log r: r are the marks as shares, ā the mean of heads."""
    total = marks.sum(dim=1, keepdim=True)
    wanted = (marks / total.where(total > 0, 1.0)).to(attention)
    mean = attention.mean(dim=1).clamp_min(torch.finfo(attention.dtype).tiny)
    crossed = -(wanted * mean.log()).sum(dim=1)
    return crossed + torch.xlogy(wanted, wanted).sum(dim=1) if divergence == "kl" else crossed
