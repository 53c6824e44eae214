"""Conicity: the vectors of the tokens do not all point the same way."""

import torch
from torch.nn.functional import cosine_similarity

from attlas.errors import UnsupportedModelError
from attlas.models.tap.call import Call
from attlas.objectives.support.objective import check_word_of, objective
from attlas.objectives.support.sites import Chosen, chosen_calls
from attlas.objectives.support.step import TrainingStep, in_single
from attlas.shapes import BatchScores, MixedValues, TokenKinds

VALUES, STATES = "values", "states"


@objective(
    paper="Mohankumar et al. 2020, arXiv:2004.14243",
    reading="What attention mixes differs from token to token, so it matters where it looks.",
    does_not_show="That the attention is faithful: vectors may differ and the answer ignore them.",
    needs=("attention",),
)
def conicity(step: TrainingStep, *, layer: Chosen = "all", of: str = VALUES) -> BatchScores:
    """Take the mean size of the cosine of the vectors of the words with their mean.

    Special tokens do not count. For an attention that pools the states of a network, as in the
    paper, values and states are the same.

    Args:
        layer: Which layers, from the front or, below zero, the back; several with /, or all.
        of: `values`, what each head mixes, or `states`, what enters the attention.
    """
    check_word_of("conicity", "of", of, (VALUES, STATES))
    found = [
        conicity_of(_vectors(step, call, of), step.content)
        for call in chosen_calls(step, "conicity", layer)
    ]
    return torch.stack(found).mean(dim=0)


def _vectors(step: TrainingStep, call: Call, of: str) -> MixedValues:
    vectors = call.values
    if of == STATES:
        states = step.tap.state_of(call.site)
        vectors = None if states is None else states[:, None]
    if vectors is None:
        raise UnsupportedModelError(f"the {of} at {call.site.name} cannot be read, so not trained")
    return in_single(vectors)


def conicity_of(vectors: MixedValues, content: TokenKinds) -> BatchScores:
    """(1/n) Σ_t |cos(v_t, mean of v)|, a mean over heads; zero for a text without words."""
    counted = content[:, None, :, None].to(vectors)
    count = counted.sum(dim=2, keepdim=True).clamp_min(1)
    mean = (vectors * counted).sum(dim=2, keepdim=True) / count
    alike = cosine_similarity(vectors, mean, dim=-1).abs()  # [batch, head, token]
    return ((alike * counted[..., 0]).sum(dim=2) / count[..., 0, 0]).mean(dim=1)
