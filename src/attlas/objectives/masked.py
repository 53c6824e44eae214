"""Masked: the label is also learned from texts of which a share is masked."""

import torch

from attlas.errors import UsageError
from attlas.objectives.support.objective import objective
from attlas.objectives.support.step import TrainingStep
from attlas.removing.operators import mask_token
from attlas.shapes import BatchScores, TokenKinds


@objective(
    paper="Madsen et al. 2024, arXiv:2310.07819",
    reading="Texts with masked words are nothing new, so removing words measures what they do.",
    does_not_show="That an explanation of this model holds for one that was not trained so.",
    needs=("labels", "mask"),
    passes=1,
)
def masked(step: TrainingStep, *, most: float = 1.0) -> BatchScores:
    """Take the loss of the label on the texts with a random share of their words masked.

    The share is drawn for each text, evenly from none to `most`.

    Args:
        most: The largest share of the words that is masked.
    """
    if not 0 < most <= 1:
        raise UsageError(f"most of masked is above 0 and at most 1, not {most}")
    ids = step.arguments["input_ids"]
    gone = drawn(step.content, most, step.random)
    number = mask_token(step.tokenizer)
    return step.losses({**step.arguments, "input_ids": ids.masked_fill(gone, number)})


def drawn(content: TokenKinds, most: float, random: torch.Generator) -> TokenKinds:
    """Words that are masked: of each text a share of its own."""
    share = torch.rand(len(content), 1, generator=random) * most
    chance = torch.rand(content.shape, generator=random)
    return (chance < share).to(content.device) & content
