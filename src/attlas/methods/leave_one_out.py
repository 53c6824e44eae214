"""Leave one out: remove each token in turn and see how the target's probability changes."""

import torch

from attlas.methods.support.method import Scored, method
from attlas.models.asking.question import Question
from attlas.models.asking.scores import score_table, target_scores, visible_tokens
from attlas.removing.removal import removable, remove_each, usual_removal


@method(
    family="reference",
    signed=True,
    of="probability",
    paper="Li et al. 2016, arXiv:1612.08220",
    reading="How far the target's probability falls when the token is removed.",
    needs=("removal",),
    many_targets=True,
    fills=True,
    weighs=lambda question, options: len(question.inputs.tokens[0]),
)
def leave_one_out(question: Question, *, removal: str | None = None) -> Scored:
    """Score each token by p(x) − p(x without the token).

    `removal` says what "without" means: `delete`, `mask` (replace by the mask token, or by the
    nearest thing the tokenizer has; a patch is blanked), `pad`, `zero_embedding` or `knock_out`. By
    default tokens are deleted; they are masked if positions matter (patches, a target at a
    position) or if nothing would be left. Special tokens and the target's own tokens are never
    removed and score zero. Two tokens that say the same may both score low.
    """
    how = removal or usual_removal(question)
    whole = target_scores(question, "probability")
    scores = whole.new_zeros((len(question), len(question.inputs.tokens[0])))
    places = [
        (row, position)
        for row in range(len(question.inputs))
        for position in removable(question, row)
    ]
    for chunk, inputs in remove_each(question, places, how):
        rows, positions = torch.tensor(chunk, device=scores.device).unbind(1)
        if question.is_shared:  # a target does not depend on what comes after it
            reached = visible_tokens(question)[:, positions]
            asked = reached.any(dim=1).nonzero()[:, 0]
            without = score_table(question.rows(asked.tolist()).about(inputs), "probability")
            scores[asked[:, None], positions] = (whole[asked] - without).T.where(reached[asked], 0)
        else:
            shorter = question.rows(rows.tolist()).about(inputs)
            scores[rows, positions] = whole[rows] - target_scores(shorter, "probability")
    return Scored(scores, notes=(f"removal: {how}",))
