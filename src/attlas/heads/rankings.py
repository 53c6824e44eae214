"""Ways to say how much each head matters for an answer, one function each.

Each gives a number for every row and every head, those of the first site first; what a head is
worth is the mean over examples.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from inspect import Parameter, signature
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from attlas.heads.attributing import attribute_sites
from attlas.heads.gold import about_rightness, are_right
from attlas.models.asking.question import Question
from attlas.models.asking.reading import attention_gradients, fold_attention
from attlas.models.branching import variants
from attlas.models.branching.branches import Branch, run_branches
from attlas.models.tap.edits import scale
from attlas.registry import Registry
from attlas.results import Site
from attlas.shapes import Attention, HeadScores

Means = NDArray[np.floating[Any]]  # `[…, every]`
Finish = Callable[[Means, Sequence[Site]], Means]


@dataclass(frozen=True)
class Ranking:
    """A way to say how much each head matters, and what its reader must know of it."""

    name: str
    score_heads: Callable[..., HeadScores]
    paper: str
    reading: str
    finish: Finish | None = None  # what is done to the means over examples
    control: bool = False  # knows nothing: what the others are compared with

    @property
    def options(self) -> Mapping[str, Any]:
        """Its options with their defaults."""
        parameters = signature(self.score_heads).parameters.values()
        return {p.name: p.default for p in parameters if p.kind is Parameter.KEYWORD_ONLY}


RANKINGS = Registry("ranking of heads", Ranking, group="attlas.rankings")
ranking = RANKINGS.register


def list_rankings() -> list[str]:
    """Return the names of all rankings of heads."""
    return RANKINGS.names()


def of_unit_length(means: Means, sites: Sequence[Site]) -> Means:
    """The means with those of each site divided by their length, so that sites weigh the same."""
    ends = np.cumsum([site.heads for site in sites])[:-1]
    parts = np.split(means, ends, axis=-1)
    lengths = [np.linalg.norm(part, axis=-1, keepdims=True) for part in parts]
    apart = zip(parts, lengths, strict=True)
    return np.concatenate([part / (length + 1e-20) for part, length in apart], axis=-1)


@ranking(
    paper="arXiv:2004.11207",
    reading="The largest part of the gold label's probability that one entry of its attention "
    "brings, in the mean over texts.",
)
def attattr(question: Question, *, steps: int = 20) -> HeadScores:
    """The largest attribution in the head's map."""
    found = attribute_sites(question, question.subject.sites, steps)
    return torch.cat([each.weights.flatten(2).amax(dim=2) for each in found], dim=1)


@ranking(
    paper="arXiv:1905.10650",
    reading="By how much the loss would change without it, to first order, in the mean over texts.",
)
def taylor(question: Question) -> HeadScores:
    """The size of the sum of its attention times the gradient of the loss on it."""
    return torch.cat([each.sum(dim=(2, 3)).abs() for each in _terms(question)], dim=1)


@ranking(
    paper="arXiv:1905.10650",
    reading="By how much the loss would change without it at each token, to first order, as a "
    "part of its layer's length.",
    finish=of_unit_length,
)
def taylor_michel(question: Question) -> HeadScores:
    """As taylor, but for the size, which is taken token by token; then each layer has length 1."""
    return torch.cat([each.sum(dim=3).abs().sum(dim=2) for each in _terms(question)], dim=1)


@ranking(
    paper="arXiv:1905.10650",
    reading="The share of texts that are answered rightly with it and not without it, less those "
    "of which the reverse is true.",
)
def accuracy_difference(question: Question) -> HeadScores:
    """Whether the answer is right, less whether it is with this head alone switched off."""
    sites = question.subject.sites
    off = scale(0.0)
    branches = [
        Branch(site, variants.each([off.at(heads=head) for head in range(site.heads)]))
        for site in sites
    ]
    whole = are_right(question)
    found = run_branches(about_rightness(question), branches, "probability")
    return torch.cat([whole[:, None] - each.scores.T for each in found], dim=1)


@ranking(
    paper="arXiv:2004.11207",
    reading="How much of its attention a token gives to the one it attends to most, in the mean "
    "over tokens and texts. The answer plays no part.",
)
def attention(question: Question) -> HeadScores:
    """The mean over tokens of the largest weight in the row."""
    held = fold_attention(question, lambda call: call.weights.amax(dim=3).mean(dim=2)).held
    return torch.cat(list(held), dim=1)


@ranking(paper="", reading="A number drawn at random: what knowing nothing gives.", control=True)
def random(question: Question, *, seed: int = 0) -> HeadScores:
    """A random number, the same for every text."""
    count = sum(site.heads for site in question.subject.sites)
    drawn = torch.rand(count, generator=torch.Generator().manual_seed(seed))
    return drawn.expand(len(question), -1)


def _terms(question: Question) -> Iterator[Attention]:
    """The attention of each site times the gradient of the loss, −log p of the target, on it."""
    # A target of tokens in a row is scored by its log-probability; so is, then, one of a single.
    logs = tuple(replace(target, chained=True) for target in question.targets)
    for call, gradient in attention_gradients(replace(question, targets=logs), "probability"):
        yield -call.weights * gradient
