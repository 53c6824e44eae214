"""Kernel SHAP: what each token adds to the target, averaged over sets of the other tokens."""

import torch

from attlas.errors import UsageError
from attlas.methods.support.coalitions import shapley_coalitions, shapley_values
from attlas.methods.support.masking import one_by_one, over_players, probabilities_unmasked
from attlas.methods.support.method import Scored, method
from attlas.models.asking.question import Question
from attlas.removing.removal import removable
from attlas.shapes import TokenScores


@method(
    family="reference",
    signed=True,
    of="probability",
    paper="Lundberg & Lee 2017, arXiv:1705.07874",
    reading="What the token adds to the target's probability, on average over the other tokens.",
    needs=("removal",),
    cost="expensive",
    many_targets=True,
    fills=True,
    weighs=lambda question, options: options["samples"],
)
def kernel_shap(question: Question, *, samples: int = 512, seed: int = 0) -> Scored:
    """Score each token by its Shapley value: its share of p(x) − p(x with everything masked).

    The scores add up to that difference. `samples` is the number of sets of tokens that are tried,
    besides the full and the empty set; if there are no more sets, the scores are exact. `seed`
    draws the sets. Special tokens and the target's own tokens are never masked and score zero.
    Masked texts may be unlike anything the model was trained on.
    """
    if samples < 2:
        raise UsageError(f"samples of kernel_shap must be at least 2, not {samples}")
    scored = [_score(each, samples, seed) for each in one_by_one(question)]
    notes = [note for scores, note, _ in scored for _ in scores]
    bases = [{"base": p, "base_of": "everything masked"} for _, _, empty in scored for p in empty]
    found = torch.cat([scores for scores, _, _ in scored])
    return Scored(found, row_notes=notes, row_details=bases)


def _score(
    question: Question, samples: int, seed: int
) -> tuple[TokenScores, tuple[str, ...], list[float]]:
    """The scores of one input, a note on how they were computed, and p with everything masked."""
    players = len(removable(question, 0))
    generator = torch.Generator().manual_seed(seed)
    present, weights = shapley_coalitions(players, samples, generator)
    ends = torch.tensor([[False], [True]]).expand(2, players)
    values = probabilities_unmasked(question, torch.cat([ends, present]))
    scores = shapley_values(present, weights, values[2:], empty=values[0], whole=values[1])
    sets = len(present) + 2
    exact = sets >= 2**players
    how = f"exact, from all {2**players}" if exact else f"estimated from {sets}"
    note = f"{how} sets of tokens left unmasked"
    return over_players(question, scores), (note,), values[0].tolist()
