"""What a method is, and the registry of all methods."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from inspect import Parameter, signature
from types import NoneType, UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints

from torch import Tensor

from attlas.catalogue import what_it_gives
from attlas.errors import NotDefinedError, UnknownNameError, UnsupportedModelError, UsageError
from attlas.models.asking.question import Question
from attlas.models.encoding.token_ids import is_number
from attlas.models.loading.offloading import bits_may_be_why, is_quantised
from attlas.registry import Registry, check_known
from attlas.results import Site
from attlas.shapes import TokenScores

PLAIN = {int, float, str, bool, NoneType}
TWO_DEVICES = "to be on the same device"  # in torch's own error
FAMILIES = {
    "W": "the attention weights alone",
    "V": "weights with values or gradients",
    "P": "propagation through the whole model",
    "reference": "no attention: the other methods are compared with these",
}
NEEDS = {
    "attention": "attention weights that can be read",
    "gradients": "gradients on the attention",
    "branches": "a stack of blocks that can run on copies of their input",
    "embeddings": "embeddings of its tokens",
    "removal": "a mask token, or tokens that can be deleted",
}
COSTS = {
    "cheap": "a few passes of the model",
    "expensive": "some hundred passes of the model, or much work beside it",
}


@dataclass(frozen=True, eq=False)
class Scored:
    """What a method returns for a batch: a score for each token, and maps if it makes them."""

    scores: TokenScores
    maps: Sequence[tuple[Site, Tensor]] = ()  # each `[batch, head, query, key]`
    notes: tuple[str, ...] = ()
    row_notes: Sequence[tuple[str, ...]] = ()  # for each row, if they differ
    # For each row, what its result also stores. A method whose scores add up to the target from a
    # base value says so here: `base` is that value, and `base_of` what it is the value of. One that
    # divides the target among the tokens and something else says of what the rest is: `rest_of`.
    row_details: Sequence[Mapping[str, Any]] = ()
    row_warnings: Sequence[str] = ()  # for each row, why its scores must not be relied on, or ""
    shows: str = ""  # what a weight of the maps is, such as attention × gradient


@dataclass(frozen=True)
class Method:
    """A way to score the tokens of an input, and what readers of the scores must know."""

    name: str
    score_tokens: Callable[..., Scored]
    family: str  # a key of FAMILIES
    signed: bool  # whether a score may be below zero; if it is `of` the target: against the target
    of: str | None  # logit or probability of the target; None: the target plays no part
    paper: str
    reading: str  # one sentence: what a score says
    maps: str | None = None  # one map at each of the `sites`, or one over `all`; None: no maps
    needs: tuple[str, ...] = ()  # keys of NEEDS: what the model must have
    cost: str = "cheap"  # a key of COSTS
    many_targets: bool = False  # whether one pass serves several targets of one input
    fills: bool = False  # whether texts of several lengths may share a padded batch
    learns: bool = False  # whether its first pass finds the target; otherwise one more is needed
    by_rows: bool = False  # whether it makes no map of a long input, unless maps are asked for
    passes: int | None = None  # how often the model runs for one text; None: that depends on it
    # About how many passes over a text its work weighs, for a question and all options, where
    # `passes` does not tell; a pass back weighs two. Plans are made with it.
    weighs: Callable[[Question, Mapping[str, Any]], float | int] | None = None
    pair_vectors: int = 0  # of each pair of tokens that exist at once, if it has any
    in_double: bool = False  # whether a model in float32 runs as a copy in float64
    # The options by which it weighs most, where the text decides how often the model runs.
    hardest: Callable[[Mapping[str, Any]], Mapping[str, Any]] | None = None

    def __post_init__(self) -> None:
        check_known("family", [self.family], FAMILIES)
        check_known("quantity", [self.of or "logit"], ("logit", "probability"))
        check_known("kind of maps", [self.maps or "sites"], ("sites", "all"))
        check_known("need of a method", self.needs, NEEDS)
        check_known("cost", [self.cost], COSTS)

    def __reduce_ex__(self, protocol: Any) -> Any:
        """To a worker it goes by its name: there, too, it is registered."""
        if self.score_tokens.__module__ == "__main__":  # but for that of a script
            return super().__reduce_ex__(protocol)
        return _named, (self.name,)

    @property
    def summary(self) -> str:
        """The first line of its docstring."""
        return (self.score_tokens.__doc__ or "").strip().splitlines()[0]

    @property
    def options(self) -> Mapping[str, Any]:
        """Its options with their defaults."""
        return options_of(self.score_tokens)

    @property
    def takes_sides(self) -> bool:
        """Whether a score says if a token speaks for or against the target."""
        return self.signed and self.of is not None

    @property
    def gives(self) -> str:
        """What it returns, in a few words."""
        return what_it_gives(self.signed, self.of, self.maps)

    def check_options(self, options: Mapping[str, Any]) -> dict[str, Any]:
        """The options in the types that the method takes; an unknown or wrong one is an error."""
        return checked_options(self.name, self.score_tokens, options)

    def score(self, question: Question, options: Mapping[str, Any]) -> Scored:
        """Score the tokens of a batch."""
        try:
            return self.score_tokens(question, **self.check_options(options))
        except UnsupportedModelError as problem:
            model = question.subject.model
            if isinstance(problem, NotDefinedError) or not is_quantised(model):
                raise
            raise UnsupportedModelError(f"{problem}; {bits_may_be_why(model)}") from problem
        except RuntimeError as problem:
            if TWO_DEVICES not in str(problem):
                raise
            raise UnsupportedModelError(
                f"{self.name} does not run on a model that is on several devices: load it on one, "
                "with max_memory to offload what does not fit"
            ) from problem


def options_of(function: Callable[..., Any]) -> dict[str, Any]:
    """The options of a registered function with their defaults: its keyword-only parameters."""
    return dict(_defaults(function))


@cache
def _hints(function: Callable[..., Any]) -> Mapping[str, Any]:
    return get_type_hints(function)


@cache
def _defaults(function: Callable[..., Any]) -> Mapping[str, Any]:
    parameters = signature(function).parameters.values()
    return {p.name: p.default for p in parameters if p.kind is Parameter.KEYWORD_ONLY}


def checked_options(
    name: str, function: Callable[..., Any], options: Mapping[str, Any]
) -> dict[str, Any]:
    """The options that a registered function is called with, each of the kind it asks for."""
    known = _defaults(function)
    for option in options:
        if option not in known:
            raise UnknownNameError(f"option of {name}", option, known)
    hints = _hints(function) if options else {}
    return {
        option: _checked(f"{option} of {name}", value, hints[option])
        for option, value in options.items()
    }


def _checked(what: str, value: Any, hint: Any) -> Any:
    kinds = get_args(hint) if get_origin(hint) in (Union, UnionType) else (hint,)
    if not set(kinds) <= PLAIN:  # the function checks it itself
        return value
    plain = float(value) if float in kinds and is_number(value) else value
    plain = int(plain) if is_number(plain) else plain
    if not isinstance(plain, kinds) or (isinstance(plain, bool) and bool not in kinds):
        allowed = " or ".join(kind.__name__.removesuffix("Type") for kind in kinds)
        raise UsageError(f"{what} is {allowed}, not {value!r}")
    return plain


METHODS = Registry("method", Method, group="attlas.methods", package="attlas.methods")
method = METHODS.register


def _named(name: str) -> Method:
    return METHODS[name]
