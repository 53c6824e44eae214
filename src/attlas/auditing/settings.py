"""What an audit does: which methods, measures and removals, on how many texts, by which seed."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from attlas.auditing.verdict.rules import Rules
from attlas.errors import UnknownNameError, UsageError
from attlas.measures import MEASURES, Measure
from attlas.methods import METHODS, Method
from attlas.removing.ceilings import AIMS
from attlas.removing.removal import REMOVALS
from attlas.trials import TRIALS

REMOVED_BY = ("delete", "mask", "knock_out")
JUDGED_BY = ("delete", "mask")  # what the verdict rests on
DEAR_REMOVALS = ("knock_out", "zero_embedding")
RANDOM = "random_scores"
QUICK_METHODS = (
    *("raw_attention", "attention_rollout", "effective_attention"),
    *("value_weighted_attention", "gradient_attention", "generic_relevance", "attn_lrp"),
    *("gradient", "input_x_gradient", "integrated_gradients", RANDOM),
)
QUICK_MEASURES = ("comprehensiveness", "sufficiency", "decision_flip", "tau_leave_one_out")
QUICK_MARKS = ("auprc",)
QUICK_TRIALS = ("permutation", "uniform", "agreement")
SIZES = ("shuffles", "some", "few")
BROUGHT = ("training data", "conllu")  # what a trial may need that the texts do not have


@dataclass(frozen=True)
class Settings:
    """How an audit is run.

    Dear methods, controls and ceilings get `some` of the texts, dear removals and measures that ask
    the method again `few`; all others get all. `shuffles` is how often the scores of a text are put
    at other tokens.
    """

    methods: tuple[str, ...]
    measures: tuple[str, ...]
    trials: tuple[str, ...] = ()
    removals: tuple[str, ...] = REMOVED_BY
    shuffles: int = 5
    some: int = 200
    few: int = 100
    seed: int = 0
    truncate: bool = False
    rules: Rules = field(default_factory=Rules)

    def __post_init__(self) -> None:
        for name, least in (("shuffles", 2), ("some", 1), ("few", 1), ("seed", 0)):
            if getattr(self, name) < least:
                raise UsageError(f"{name} is {least} or more, not {getattr(self, name)}")
        weights = [each.name for each in METHODS if each.family == "W"]
        _need("methods", self.methods, weights)
        _need("measures", self.measures, AIMS)

    def methods_on(self, rank: int) -> list[Method]:
        """The methods for a text of this rank in the order in which texts are drawn."""
        found = [METHODS[name] for name in self.methods]
        return [each for each in found if each.cost == "cheap" or rank < self.some]

    def removals_on(self, rank: int) -> list[str]:
        """The removals for a text of this rank."""
        return [each for each in self.removals if each not in DEAR_REMOVALS or rank < self.few]

    @property
    def judged_by(self) -> tuple[str, ...]:
        """The removals that the verdict rests on: those of all texts."""
        usual = tuple(each for each in self.removals if each in JUDGED_BY)
        return usual or self.removals

    def found(self, *, asking: bool) -> list[Measure]:
        """The measures, those that ask the method again or all others."""
        chosen = [MEASURES[name] for name in self.measures]
        return [each for each in chosen if (each.ask is not None) is asking]

    def to_dict(self) -> dict[str, Any]:
        """The settings as JSON."""
        return asdict(self)


def _need(what: str, given: Sequence[str], needed: Sequence[str]) -> None:
    if not set(given) & set(needed):
        allowed = ", ".join(needed)
        raise UsageError(f"the verdict needs one of these {what} at least: {allowed}")


def settings_of(
    methods: Sequence[str] | None,
    measures: Sequence[str] | None,
    trials: Sequence[str] | None,
    removal: Sequence[str] | None,
    quick: bool,
    options: Mapping[str, Any],
) -> Settings:
    """The settings that a user asked for; what was not said is the default, or the quick one."""
    usual = Settings(
        tuple(METHODS.names()),
        tuple(MEASURES.names()),
        tuple(each.name for each in TRIALS if not set(each.needs) & set(BROUGHT)),
    )
    if quick:
        usual = Settings(
            QUICK_METHODS,
            (*QUICK_MEASURES, *QUICK_MARKS),
            tuple(name for name in QUICK_TRIALS if name in TRIALS.names()),
            JUDGED_BY,
            some=40,
            few=20,
        )
    return replace(
        usual,
        methods=_with_control(_names(methods, METHODS, usual.methods)),
        measures=_names(measures, MEASURES, usual.measures),
        trials=_chosen(trials, usual.trials),
        removals=_removals(removal, usual.removals),
        **options,
    )


def _names(given: Iterable[str] | None, known: Any, usual: tuple[str, ...]) -> tuple[str, ...]:
    if given is None:
        return usual
    if isinstance(given, str):
        raise UsageError(f"names are given in a list, as [{given!r}]")
    return tuple(dict.fromkeys(known[name].name for name in given)) or usual


def _chosen(given: Iterable[str] | None, usual: tuple[str, ...]) -> tuple[str, ...]:
    """The trials; none where an empty list is given."""
    return usual if given is None else tuple(dict.fromkeys(TRIALS[name].name for name in given))


def _with_control(names: tuple[str, ...]) -> tuple[str, ...]:
    return names if RANDOM in names else (*names, RANDOM)


def _removals(given: Iterable[str] | None, usual: tuple[str, ...]) -> tuple[str, ...]:
    if given is None:
        return usual
    chosen = tuple(dict.fromkeys([given] if isinstance(given, str) else given))
    for name in chosen:
        if name not in REMOVALS:
            raise UnknownNameError("removal", name, REMOVALS)
    return chosen or usual
