"""What a method is, and the registry of all of them."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from inspect import Parameter, signature
from typing import Any

from torch import Tensor

from attlas.errors import UnknownNameError
from attlas.models.question import Question
from attlas.registry import Registry
from attlas.results import Site
from attlas.shapes import TokenScores

FAMILIES = {
    "W": "the attention weights alone",
    "V": "weights with values or gradients",
    "P": "propagation through the whole model",
    "reference": "no attention: what the others are compared with",
}


@dataclass(frozen=True, eq=False)
class Scored:
    """What a method gives for a batch: a score for each token, and maps where it makes them."""

    scores: TokenScores
    maps: Sequence[tuple[Site, Tensor]] = ()  # each `[batch, head, query, key]`
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Method:
    """A way to score the tokens of an input, and what its reader must know of it."""

    name: str
    score_tokens: Callable[..., Scored]
    family: str  # a key of FAMILIES
    signed: bool  # whether a score below zero means "against the target"
    of: str | None  # the quantity of the target it looks at: logit or probability; None: no target
    paper: str
    reading: str  # one sentence: what a score says

    @property
    def summary(self) -> str:
        """The first line of its description."""
        return (self.score_tokens.__doc__ or "").strip().splitlines()[0]

    @property
    def options(self) -> Mapping[str, Any]:
        """Its options with their defaults."""
        parameters = signature(self.score_tokens).parameters.values()
        return {p.name: p.default for p in parameters if p.kind is Parameter.KEYWORD_ONLY}

    def score(self, question: Question, options: Mapping[str, Any]) -> Scored:
        """Score the tokens of a batch; an unknown option is an error that names those there are."""
        for name in options:
            if name not in self.options:
                raise UnknownNameError(f"option of {self.name}", name, self.options)
        return self.score_tokens(question, **options)


METHODS: Registry[Method] = Registry("method")


def method(
    *, family: str, signed: bool, of: str | None, paper: str, reading: str
) -> Callable[[Callable[..., Scored]], Callable[..., Scored]]:
    """Register the decorated function as a method under its own name."""

    def register(score_tokens: Callable[..., Scored]) -> Callable[..., Scored]:
        name = score_tokens.__name__
        METHODS.add(name, Method(name, score_tokens, family, signed, of, paper, reading))
        return score_tokens

    return register
