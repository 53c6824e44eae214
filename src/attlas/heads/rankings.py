"""Rankings: ways to measure how much each head matters for an answer, one function each.

Each gives a number for every row and every head, the heads of the first site first. The importance
of a head is the mean over examples.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from inspect import Parameter, signature
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from attlas.heads.accuracy import are_correct, ask_whether_correct
from attlas.heads.site_attribution import attribute_sites
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
    """A way to measure how much each head matters, and what its readers must know."""

    name: str
    score_heads: Callable[..., HeadScores]
    paper: str
    reading: str
    finish: Finish | None = None  # applied to the means over examples
    control: bool = False  # uses no knowledge: the others are compared with it

    @property
    def options(self) -> Mapping[str, Any]:
        """Its options with their defaults."""
        parameters = signature(self.score_heads).parameters.values()
        return {p.name: p.default for p in parameters if p.kind is Parameter.KEYWORD_ONLY}


RANKINGS = Registry("ranking of heads", Ranking, group="attlas.rankings")
ranking = RANKINGS.register


def of_unit_length(means: Means, sites: Sequence[Site]) -> Means:
    """The means, with those of each site divided by their length, so that sites weigh the same."""
    ends = np.cumsum([site.heads for site in sites])[:-1]
    by_site = np.split(means, ends, axis=-1)
    lengths = [np.linalg.norm(own, axis=-1, keepdims=True) for own in by_site]
    pairs = zip(by_site, lengths, strict=True)
    return np.concatenate([own / (length + 1e-20) for own, length in pairs], axis=-1)


@ranking(
    paper="arXiv:2004.11207",
    reading="How much one attention weight of the head adds to the gold label's probability at "
    "most, averaged over texts.",
)
def attattr(question: Question, *, steps: int = 20) -> HeadScores:
    """The largest attribution in the head's map."""
    sites = attribute_sites(question, question.subject.sites, steps)
    return torch.cat([each.weights.flatten(2).amax(dim=2) for each in sites], dim=1)


@ranking(
    paper="arXiv:1905.10650",
    reading="How much the loss would change without the head, to first order, averaged over texts.",
)
def taylor(question: Question) -> HeadScores:
    """The absolute sum of the head's attention times the gradient of the loss on it."""
    return torch.cat([each.sum(dim=(2, 3)).abs() for each in _terms(question)], dim=1)


@ranking(
    paper="arXiv:1905.10650",
    reading="How much the loss would change without the head at each token, to first order, "
    "relative to the other heads of its layer.",
    finish=of_unit_length,
)
def taylor_michel(question: Question) -> HeadScores:
    """Like taylor, but with absolute values for each token, and each layer scaled to length 1."""
    return torch.cat([each.sum(dim=3).abs().sum(dim=2) for each in _terms(question)], dim=1)


@ranking(
    paper="arXiv:1905.10650",
    reading="The share of texts that are answered correctly only with the head, minus the share "
    "of those answered correctly only without it.",
)
def accuracy_difference(question: Question) -> HeadScores:
    """1 or 0 for a correct answer, minus the same with only this head switched off."""
    sites = question.subject.sites
    off = scale(0.0)
    branches = [
        Branch(site, variants.each([off.at(heads=head) for head in range(site.heads)]))
        for site in sites
    ]
    whole = are_correct(question)
    results = run_branches(ask_whether_correct(question), branches, "probability")
    return torch.cat([whole[:, None] - each.scores.T for each in results], dim=1)


@ranking(
    paper="arXiv:2004.11207",
    reading="The largest attention weight of a token, averaged over tokens and texts. The answer "
    "plays no part.",
)
def attention(question: Question) -> HeadScores:
    """The largest weight in a token's row, averaged over tokens."""
    held = fold_attention(question, lambda call: call.weights.amax(dim=3).mean(dim=2)).held
    return torch.cat(list(held), dim=1)


@ranking(paper="", reading="A random number: a ranking without any knowledge.", control=True)
def random(question: Question, *, seed: int = 0) -> HeadScores:
    """A random number, the same for every text."""
    count = sum(site.heads for site in question.subject.sites)
    drawn = torch.rand(count, generator=torch.Generator().manual_seed(seed))
    return drawn.expand(len(question), -1)


def _terms(question: Question) -> Iterator[Attention]:
    """The attention of each site times the gradient of the loss, −log p of the target, on it."""
    # A chained target is scored by its log-probability, also if it has only one token.
    logs = tuple(replace(target, chained=True) for target in question.targets)
    for call, gradient in attention_gradients(question.asking(logs), "probability"):
        yield -call.weights * gradient
