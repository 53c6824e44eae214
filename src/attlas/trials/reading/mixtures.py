"""What hidden states and outputs of heads are mixed from: the share of each token."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from attlas.mathematics.divergences import jensen_shannon
from attlas.methods.effective_attention import head_values
from attlas.methods.hidden_token_attribution import draw
from attlas.models.asking.question import Question
from attlas.models.asking.reading import fold_attention
from attlas.models.states.jacobian import head_gains, state_gains, width_of
from attlas.models.tap.call import Call
from attlas.results import Site
from attlas.tokens import Tokens
from attlas.trials.reading.row_freedom import correlations
from attlas.trials.support.token_kinds import mark_kinds

NEGLIGIBLE = 1e-10  # share of the squares at the state that moves most; less is rounding
FARTHEST = 10  # the largest distance, in tokens, between a state and a contributor


@dataclass(frozen=True, eq=False)
class Mixture:
    """The mixture of one text, as means over the chosen positions."""

    positions: tuple[int, ...]
    own: NDArray[np.float64]  # `[layer]`: the share of the token at the state's own position
    other_more: NDArray[np.float64]  # `[layer]`: how often another token has the largest share
    by_distance: NDArray[np.float64]  # `[layer, distance]`: a token's share; NaN if there is none
    apart: list[
        NDArray[np.float64]
    ]  # for each layer, `[head]`: divergence of attention and aggregation
    alike: list[NDArray[np.float64]]  # the same, but correlations
    kinds: NDArray[np.float64]  # `[attention or aggregation, kind]`

    def parts(self) -> list[NDArray[np.float64]]:
        """All its arrays, one after the other; those of the heads come last."""
        return [self.own, self.other_more, self.by_distance, self.kinds, *self.apart, *self.alike]

    @classmethod
    def of_parts(cls, positions: Sequence[int], parts: Sequence[NDArray[np.float64]]) -> "Mixture":
        """A mixture from its parts."""
        own, other_more, by_distance, kinds, *heads = parts
        half = len(heads) // 2
        pairs = heads[:half], heads[half:]
        return cls(tuple(positions), own, other_more, by_distance, *pairs, kinds)


def mixtures_of(
    question: Question,
    positions: Sequence[Sequence[int]],
    heads_at: int,
    probes: int,
    seed: int,
) -> list[Mixture]:
    """What the states at some positions of each row are mixed from, and what heads gather there.

    The heads are asked at the first `heads_at` positions alone.
    """
    asked, first = question.copied(), [own[:heads_at] for own in positions]
    directions = draw(probes, width_of(asked, -1), seed)
    gains = state_gains(asked, _places(positions), directions)
    sites = own_sites(asked)
    attention = _attention(asked, first, sites)
    width = max(width for _, width in attention)
    gathered = head_gains(asked, _places(first), draw(probes, width, seed), sites)
    by_row = zip(*(each.split([*map(len, first)], dim=1) for each in gathered), strict=True)
    by_state = gains.split([*map(len, positions)], dim=1)
    return [
        _mixture(asked, row, positions[row], own, [each[row] for each, _ in attention], heads)
        for row, (own, heads) in enumerate(zip(by_state, by_row, strict=True))
    ]


def _places(positions: Sequence[Sequence[int]]) -> list[tuple[int, int]]:
    return [(row, place) for row, own in enumerate(positions) for place in own]


def _mixture(
    question: Question,
    row: int,
    positions: Sequence[int],
    gains: Tensor,
    attention: Sequence[Tensor],
    gathered: Sequence[Tensor],
) -> Mixture:
    """The mixture of one row, from the squared gains of its states and of its heads."""
    stack, shares = question.inputs.prefix or question.inputs.source, shares_of(gains)
    own = torch.tensor([stack.start + place for place in positions])
    floor = NEGLIGIBLE * gains.sum(dim=-1).max().item()
    pairs = [(rows, shares_of(each, floor)) for rows, each in zip(attention, gathered, strict=True)]
    return Mixture(
        tuple(positions),
        own_share(shares, own).nanmean(dim=1).numpy(),
        other_has_more(shares, own).nanmean(dim=1).numpy(),
        by_distance(shares[:, :, stack.start : stack.stop], own - stack.start).numpy(),
        [jensen_shannon(*pair).nanmean(dim=1).numpy() for pair in pairs],
        [_correlated(*pair).nanmean(dim=1).numpy() for pair in pairs],
        _by_kind(question.inputs.tokens[row], pairs).numpy(),
    )


def shares_of(squares: Tensor, floor: float = 0.0) -> Tensor:
    """Lengths over tokens, from their squares, as shares of their sum.

    NaN if the squares add up to no more than the floor: that is rounding.
    """
    norms = squares.double().sqrt()
    shares = norms / norms.sum(dim=-1, keepdim=True)
    return shares.masked_fill(squares.sum(dim=-1, keepdim=True) <= floor, torch.nan)


def own_share(shares: Tensor, own: Tensor) -> Tensor:
    """The share of its own token in each state, `[layer, position]`."""
    return shares[:, torch.arange(len(own)), own]


def other_has_more(shares: Tensor, own: Tensor) -> Tensor:
    """1 where another token has the largest share in a state, else 0."""
    found = (shares.argmax(dim=-1) != own).double()
    return found.masked_fill(shares.isnan().any(dim=-1), torch.nan)


def by_distance(shares: Tensor, own: Tensor) -> Tensor:
    """The mean share of the tokens at each distance from a state, `[layer, distance]`."""
    distances = (torch.arange(shares.shape[-1]) - own[:, None]).abs()
    columns = [
        shares[:, distances == far].mean(dim=1)
        if bool((distances == far).any())
        else shares.new_full((len(shares),), torch.nan)
        for far in range(FARTHEST + 1)
    ]
    return torch.stack(columns, dim=1)


def own_sites(question: Question) -> list[Site]:
    """The self-attention of the stack that the prediction is read from."""
    kinds = [site.kind for site in question.subject.sites if site.kind != "cross"]
    return [site for site in question.subject.sites if site.kind == kinds[-1]]


def _attention(
    question: Question, positions: Sequence[Sequence[int]], sites: Sequence[Site]
) -> list[tuple[list[Tensor], int]]:
    """For each site: the rows of each text's positions over all tokens, and its values' width."""
    stack, length = question.inputs.prefix or question.inputs.source, len(question.inputs.tokens[0])

    def rows(call: Call) -> tuple[list[Tensor], int]:
        found = []
        for row, own in enumerate(positions):
            over = torch.zeros(call.weights.shape[1], len(own), length, dtype=torch.float64)
            over[:, :, stack.start : stack.stop] = call.weights[row, :, list(own)].double().cpu()
            found.append(over)
        return found, head_values(call).shape[-1]

    return list(fold_attention(question, rows, sites).held)


def _correlated(attention: Tensor, gathered: Tensor) -> Tensor:
    """The correlation over tokens that either of them reaches, `[head, position]`."""
    return correlations(attention, gathered, (attention > 0) | (gathered > 0))


def _by_kind(tokens: Tokens, pairs: Sequence[tuple[Tensor, Tensor]]) -> Tensor:
    """The share of each kind of token, a mean over all heads."""
    (kinds,) = mark_kinds([tokens], 0, len(tokens))
    sides = [torch.cat([pair[side].flatten(0, 1) for pair in pairs]) for side in (0, 1)]
    return torch.stack([side.nanmean(dim=0) @ kinds for side in sides])
