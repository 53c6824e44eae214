"""Deception: the attention that the answer is read by keeps off some tokens."""

from collections.abc import Sequence

import torch

from attlas.errors import UsageError
from attlas.objectives.support.objective import check_word_of, objective
from attlas.objectives.support.sites import READOUT, Chosen, chosen_calls, read_rows
from attlas.objectives.support.step import TrainingStep
from attlas.shapes import BatchScores, ReadRows, TokenKinds

MEAN, LARGEST = "mean", "max"
NEAREST = 1e-6  # to one that the attention on hidden tokens can come


@objective(
    paper="Pruthi et al. 2020, arXiv:1909.07913",
    reading="The attention that the answer is read by has nothing on the named tokens.",
    does_not_show="That the model does not use these tokens: it can use them and look elsewhere.",
    needs=("attention",),
)
def deception(
    step: TrainingStep,
    *,
    layer: Chosen = "all",
    head: Chosen = "all",
    rows: str = READOUT,
    over: str = MEAN,
    words: str | Sequence[str] = (),
) -> BatchScores:
    """Take −log(1 − m), with m the attention on the tokens to hide.

    Args:
        layer: Which layers, from the front or, below zero, the back; several with /, or all.
        head: Which heads, in the same way.
        rows: `readout`, the rows that the answer is read from, or `all`.
        over: `mean` of the heads, or `max`, the head that looks at them most.
        words: The words to hide, several with /; those that the data mark if none are named.
    """
    check_word_of("deception", "over", over, (MEAN, LARGEST))
    hidden = _hidden(step, (words,) if isinstance(words, str) else tuple(words))
    found = [
        penalty(read_rows(step, "deception", call, rows, head), hidden, over)
        for call in chosen_calls(step, "deception", layer)
    ]
    return torch.stack(found).mean(dim=0)


def penalty(attention: ReadRows, hidden: TokenKinds, over: str) -> BatchScores:
    """−log(1 − m) for each text, of the mean or of the largest head."""
    mass = (attention * hidden[:, None].to(attention)).sum(dim=-1)
    each = -torch.log1p(-mass.clamp(max=1 - NEAREST))
    return each.mean(dim=1) if over == MEAN else each.amax(dim=1)


def _hidden(step: TrainingStep, words: Sequence[str]) -> TokenKinds:
    if not words:
        return step.needed_marks("deception") > 0
    if step.tokenizer is None:
        raise UsageError("words of deception are found by the tokenizer, and none was given")
    ids = step.arguments["input_ids"]
    hidden = torch.zeros_like(ids, dtype=torch.bool)
    for word in words:
        for written in (word, f" {word}"):  # some tokenizers mark the space before a word
            pieces = step.tokenizer(written, add_special_tokens=False)["input_ids"]
            hidden |= occurrences(ids, pieces)
    return hidden


def occurrences(ids: torch.Tensor, pieces: Sequence[int]) -> TokenKinds:
    """Which tokens belong to this sequence of ids, wherever it stands."""
    count = len(pieces)
    found = torch.zeros_like(ids, dtype=torch.bool)
    if not 0 < count <= ids.shape[1]:
        return found
    starts = (ids.unfold(1, count, 1) == ids.new_tensor(list(pieces))).all(dim=-1)
    for place in range(count):
        found[:, place : place + starts.shape[1]] |= starts
    return found
