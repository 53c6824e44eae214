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
    where places count (patches, a target tied to a position) or nothing would be left. Special
    tokens and the target's own are never removed and score zero.
    """
    how = removal or usual_removal(question)
    whole = question.score("probability")
    scores = whole.new_zeros((len(question), len(question.inputs.tokens[0])))
    for row in range(len(question)):
        positions = removable(question, row)
        parts = remove_each(question.rows([row]), positions, how)
        without = [part.score("probability") for part in parts]
        if without:
            scores[row, positions] = whole[row] - torch.cat(without)
    return Scored(scores, notes=(f"removal: {how}",))
