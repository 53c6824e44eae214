"""Disagreement: the heads of a layer do not all do the same."""

import torch
from torch.nn.functional import normalize

from attlas.errors import UnsupportedModelError
from attlas.models.tap.call import Call
from attlas.objectives.support.objective import check_word_of, objective
from attlas.objectives.support.sites import Chosen, chosen_calls
from attlas.objectives.support.step import TrainingStep, in_single
from attlas.shapes import BatchScores, MixedValues, TokenKinds

OUTPUTS, VALUES, ATTENTION = "outputs", "values", "attention"


@objective(
    paper="Li et al. 2018, arXiv:1810.10183",
    reading="The heads of a layer differ, so that a mean over heads hides less.",
    does_not_show="That each head does something of use: heads may differ and be ignored.",
    needs=("attention", "heads"),
)
def disagreement(step: TrainingStep, *, layer: Chosen = "all", of: str = OUTPUTS) -> BatchScores:
    """Take the mean cosine of every two heads of a layer, token by token.

    Args:
        layer: Which layers, from the front or, below zero, the back; several with /, or all.
        of: `outputs`, what each head adds up, `values`, what it mixes, or `attention`, its rows.
    """
    check_word_of("disagreement", "of", of, (OUTPUTS, VALUES, ATTENTION))
    found = [
        likeness(_of_heads(call, of), step.content)
        for call in chosen_calls(step, "disagreement", layer)
    ]
    return torch.stack(found).mean(dim=0)


def _of_heads(call: Call, of: str) -> MixedValues:
    weights, values = in_single(call.weights), call.values
    if of == ATTENTION:
        vectors = weights
    elif values is None:
        raise UnsupportedModelError(f"the values at {call.site.name} cannot be read")
    else:
        shared = in_single(values)
        if of == OUTPUTS:
            repeated = shared.repeat_interleave(weights.shape[1] // shared.shape[1], dim=1)
            vectors = torch.matmul(weights, repeated.to(weights))
        else:
            vectors = shared
    if vectors.shape[1] < 2:
        raise UnsupportedModelError(
            f"disagreement is between heads, and {call.site.name} has one set of {of}"
        )
    return vectors


def likeness(vectors: MixedValues, content: TokenKinds) -> BatchScores:
    """The mean over words and over pairs of two heads of the cosine of their vectors."""
    unit = normalize(vectors, dim=-1)
    total, heads = unit.sum(dim=1), vectors.shape[1]
    pairs = (total.square().sum(-1) - unit.square().sum(dim=(1, 3))) / (heads * (heads - 1))
    if pairs.shape[1] != content.shape[1]:  # an attention that pools has one row
        return pairs.mean(dim=1)
    counted = content.to(pairs)
    return (pairs * counted).sum(dim=1) / counted.sum(dim=1).clamp_min(1)
