"""Leave one out: take each token away in turn and see what becomes of the target."""

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
    reading="How far the target's probability falls when the token is taken away.",
    needs=("removal",),
    many_targets=True,
    fills=True,
)
def leave_one_out(question: Question, *, removal: str | None = None) -> Scored:
    """Score each token by p(x) − p(x without the token).

    `removal` says what "without" means: `delete`, `mask` (replaced by the mask token, or the
    nearest thing the tokenizer has; a patch is blanked), `pad`, `zero_embedding` or `knock_out`. By
    default tokens are deleted, and masked where places count (patches, a target tied to a position)
    or nothing would be left. Special tokens and the target's own are never removed and score zero.
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
        if question.is_shared:  # a target cannot miss what comes after it
            reached = visible_tokens(question)[:, positions]
            asked = reached.any(dim=1).nonzero()[:, 0]
            without = score_table(question.rows(asked.tolist()).about(inputs), "probability")
            scores[asked[:, None], positions] = (whole[asked] - without).T.where(reached[asked], 0)
        else:
            part = question.rows(rows.tolist()).about(inputs)
            scores[rows, positions] = whole[rows] - target_scores(part, "probability")
    return Scored(scores, notes=(f"removal: {how}",))
