"""Attention and its gradient over the patches of a picture, whatever stage they are from."""

from dataclasses import replace

from torch import Tensor

from attlas.mathematics.squares import (
    spread_attention,
    spread_effects,
    spread_gradient,
    spread_marks,
    spread_rows,
    spread_states,
)
from attlas.models.facts.stages import Stages
from attlas.models.tap.call import Call
from attlas.shapes import PlacedMap, PlacedRows, SiteWeights


def call_on_patches(call: Call, stages: Stages | None) -> Call:
    """The call with attention over all tokens of the picture; without stages, as it is.

    What it mixes stays the same: the patches of a square share its weight and have its value.
    """
    if stages is None:
        return call
    queries, keys = _holders(call.weights, stages)
    mask = call.mask
    if mask is not None:
        visible = call.visible if mask.shape[-2:] == call.weights.shape[-2:] else None
        mask = None if visible is None else spread_marks(visible, queries, keys)
    weights = spread_attention(call.weights, queries, keys)
    values = None if call.values is None else spread_states(call.values, keys)
    return replace(call, weights=weights, mask=mask, values=values)


def gradient_on_patches(gradient: SiteWeights, stages: Stages | None) -> SiteWeights:
    """The gradient on the attention over all tokens of the picture."""
    return gradient if stages is None else spread_gradient(gradient, *_holders(gradient, stages))


def effects_on_patches(effects: SiteWeights, stages: Stages | None) -> SiteWeights:
    """What the attention of each patch to each patch adds, where places add this much."""
    return effects if stages is None else spread_effects(effects, *_holders(effects, stages))


def mean_on_patches(mixing: PlacedMap, stages: Stages | None) -> PlacedMap:
    """A map without heads over all tokens of the picture; its rows keep their sums."""
    if stages is None:
        return mixing
    return spread_attention(mixing[:, None], *_holders(mixing, stages))[:, 0]


def states_on_patches(states: Tensor, stages: Stages | None) -> Tensor:
    """The states of all tokens of the picture, `[batch, token, feature]`."""
    if stages is None:
        return states
    return spread_states(states, stages.holders(states.shape[1]).to(states.device))


def slopes_on_patches(gradient: Tensor, stages: Stages | None) -> Tensor:
    """The gradient on the states of all tokens; a place's state is the mean of its tokens'."""
    if stages is None:
        return gradient
    shares = rows_on_patches(gradient.new_ones(1, gradient.shape[1]), stages)
    return states_on_patches(gradient, stages) * shares[..., None]


def rows_on_patches(weights: PlacedRows, stages: Stages | None) -> PlacedRows:
    """The weights of the rows of the last stage, shared by the tokens that each holds."""
    if stages is None:
        return weights
    return spread_rows(weights, stages.holders(weights.shape[-1]).to(weights.device))


def _holders(weights: Tensor, stages: Stages) -> tuple[Tensor, Tensor]:
    queries, keys = (stages.holders(count).to(weights.device) for count in weights.shape[-2:])
    return queries, keys
