"""The target's probability with some tokens masked, and players' scores put at their tokens."""

from collections.abc import Iterator

import torch

from attlas.models.asking.question import Question
from attlas.models.asking.scores import score_table
from attlas.removing.removal import masked_by, removable
from attlas.shapes import Coalitions, PlayerScores, SampleValues, TokenScores


def one_by_one(question: Question) -> Iterator[Question]:
    """One question for each input, with all of its targets."""
    if question.is_shared:
        yield question
    else:
        yield from (question.rows([row]) for row in range(len(question)))


def probabilities_unmasked(question: Question, present: Coalitions) -> SampleValues:
    """The probability of each target of one input with only these players unmasked."""
    positions = removable(question, 0)
    hidden = torch.zeros(len(present), len(question.inputs.tokens[0]), dtype=torch.bool)
    hidden[:, positions] = ~present
    batches = masked_by(question.rows([0]), hidden)
    tables = [score_table(question.about(batch.inputs), "probability") for batch in batches]
    return torch.cat(tables).double().cpu()


def over_players(question: Question, scores: PlayerScores) -> TokenScores:
    """The scores of one input's players at their tokens; all other tokens score zero."""
    over_tokens = torch.zeros(len(question), len(question.inputs.tokens[0]))
    over_tokens[:, removable(question, 0)] = scores.float()
    return over_tokens
