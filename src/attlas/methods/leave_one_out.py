"""Leave one out: take each token away in turn and see what becomes of the target."""

import torch

from attlas.methods.method import Scored, method
from attlas.models.question import Question
from attlas.quantities.removal import removable, remove_each, usual_removal


@method(
    family="reference",
    signed=True,
    of="probability",
    paper="Li et al. 2016, arXiv:1612.08220",
    reading="How far the target's probability falls when the token is taken away.",
)
def leave_one_out(question: Question, *, removal: str | None = None) -> Scored:
    """Score each token by p(x) − p(x without the token).

    `removal` says what "without" means: `delete`, or `mask` (replaced by the mask token, or the
    nearest thing the tokenizer has; a patch is blanked). By default tokens are deleted, and masked
    where the target is tied to a position. Special tokens and the target's own are never removed
    and score zero.
    """
    how = removal or usual_removal(question)
    whole = question.score("probability")
    scores = whole.new_zeros((len(question), len(question.inputs.tokens[0])))
    for row in range(len(question)):
        positions = removable(question, row)
        without = remove_each(question.rows([row]), positions, how)
        scores[row, positions] = whole[row] - torch.cat([part.score("probability") for part in without])
    return Scored(scores, notes=(f"removal: {how}",))
