"""What becomes of a target when some tokens are masked, and scores put where the tokens are."""

from collections.abc import Iterator

import torch

from attlas.models.asking.question import Question
from attlas.models.asking.scores import score_table
from attlas.removing.removal import masked_by, removable
from attlas.shapes import Coalitions, PlayerScores, SampleValues, TokenScores


def one_by_one(question: Question) -> Iterator[Question]:
    """The question of each input, with all the targets that it has."""
    if question.is_shared:
        yield question
    else:
        yield from (question.rows([row]) for row in range(len(question)))


def play(question: Question, present: Coalitions) -> SampleValues:
    """The probability of each target of one input with only these of its players unmasked."""
    positions = removable(question, 0)
    hidden = torch.zeros(len(present), len(question.inputs.tokens[0]), dtype=torch.bool)
    hidden[:, positions] = ~present
    parts = masked_by(question.rows([0]), hidden)
    found = [score_table(question.about(part.inputs), "probability") for part in parts]
    return torch.cat(found).double().cpu()


def over_players(question: Question, scores: PlayerScores) -> TokenScores:
    """The scores of the players of one input at their places; zero for all other tokens."""
    found = torch.zeros(len(question), len(question.inputs.tokens[0]))
    found[:, removable(question, 0)] = scores.float()
    return found
