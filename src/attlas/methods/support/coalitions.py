"""Coalitions: sets of tokens that stay unmasked, and scores that fit the target's values on them.

A player is a token that may be masked. Everything here is pure mathematics in float64.
"""

from itertools import combinations
from math import comb

import torch
from torch import Generator, Tensor

from attlas.shapes import Coalitions, PlayerScores, SampleValues, SampleWeights, TargetValues


def all_coalitions(players: int) -> Coalitions:
    """Every set of players, the empty set first and the full set last."""
    numbers = torch.arange(2**players)[:, None]
    return (numbers >> torch.arange(players)) % 2 == 1


def even_coalitions(players: int, count: int, generator: Generator) -> Coalitions:
    """The full set, followed by sets that contain each player with probability one half."""
    drawn = torch.rand(count, players, generator=generator) < 0.5
    drawn[:1] = True
    return drawn


def shapley_coalitions(
    players: int, count: int, generator: Generator
) -> tuple[Coalitions, SampleWeights]:
    """At most `count` sets of some but not all players, with their weights in the Shapley kernel.

    Small sets and their complements weigh most. All sets of a size are taken, size by size, as long
    as their share of the weight deserves that many draws. The rest is drawn from the other sizes,
    each set with its complement.
    """
    sets, weights = [torch.zeros(0, players, dtype=torch.bool)], [torch.zeros(0).double()]
    size, left = 1, count
    while 2 * size <= players and _covers(players, size, left):
        complete = _of_size(players, size)
        each = _mass(players, size) / comb(players, size)
        sets.append(complete)
        weights.append(torch.full((len(complete),), each).double())
        size, left = size + 1, left - len(complete)
    if 2 * size <= players and left >= 2:
        masses = [_mass(players, other) for other in range(size, players - size + 1)]
        drawn = _draw(players, size, torch.tensor(masses), left // 2, generator)
        sets.append(drawn)
        weights.append(torch.full((len(drawn),), sum(masses) / len(drawn)).double())
    return torch.cat(sets), torch.cat(weights)


def _mass(players: int, size: int) -> float:
    """The total weight of all sets of one size."""
    return (players - 1) / (size * (players - size))


def _covers(players: int, size: int, left: int) -> bool:
    """Whether the draws that are left suffice for all sets of this size, or of all sizes left."""
    others = range(size, players - size + 1)
    if sum(comb(players, other) for other in others) <= left:
        return True
    share = _mass(players, size) / sum(_mass(players, other) for other in others)
    return comb(players, size) <= share * left


def _of_size(players: int, size: int) -> Coalitions:
    """All sets of this size and their complements."""
    chosen = torch.tensor(list(combinations(range(players), size)))
    sets = torch.zeros(len(chosen), players, dtype=torch.bool).scatter_(1, chosen, True)
    return sets if 2 * size == players else torch.cat([sets, ~sets])


def _draw(
    players: int, smallest: int, masses: Tensor, pairs: int, generator: Generator
) -> Coalitions:
    """Random sets, with sizes drawn by their total weights, and their complements."""
    sizes = smallest + torch.multinomial(masses, pairs, replacement=True, generator=generator)
    ranks = torch.rand(pairs, players, generator=generator).argsort(dim=1).argsort(dim=1)
    sets = ranks < sizes[:, None]
    return torch.cat([sets, ~sets])


def shapley_values(
    present: Coalitions,
    weights: SampleWeights,
    values: SampleValues,
    empty: TargetValues,
    whole: TargetValues,
) -> PlayerScores:
    """The scores that fit the values best among those that add up to whole − empty.

    With all sets and the weights of the Shapley kernel these are the Shapley values. Players that
    the sets do not distinguish share equally.
    """
    players = present.shape[1]
    share = (whole - empty).double()[:, None] / players
    if len(present) == 0:
        return share.expand(-1, players)
    member = present.double()
    rest = values.double() - empty.double() - member.sum(dim=1, keepdim=True) * share.T
    # The columns add up to zero, so the shortest solution adds up to zero as well.
    centred = member - member.mean(dim=1, keepdim=True)
    root = weights.double().sqrt()[:, None]
    solution: Tensor = torch.linalg.lstsq(root * centred, root * rest, driver="gelsd").solution
    return share + solution.T


def ridge_scores(
    present: Coalitions, weights: SampleWeights, values: SampleValues, penalty: float
) -> PlayerScores:
    """The slopes of a weighted ridge regression of the values on which players are present.

    The intercept is not penalised.
    """
    shares = weights.double()[:, None] / weights.double().sum()
    member, outcome = present.double(), values.double()
    member, outcome = (each - (shares * each).sum(dim=0) for each in (member, outcome))
    weighted = member.T * weights.double()
    normal = weighted @ member + penalty * torch.eye(present.shape[1]).double()
    slopes: Tensor = torch.linalg.solve(normal, weighted @ outcome)
    return slopes.T


def closeness(present: Coalitions, width: float) -> SampleWeights:
    """An exponential kernel on the cosine distance between each set and the full set."""
    distance = 1 - present.double().mean(dim=1).sqrt()
    return torch.exp(-(distance**2) / (2 * width**2))
