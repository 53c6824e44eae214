"""The settings of an audit: methods, measures, trials, removals, numbers of texts, seed, rules."""

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from attlas.auditing.verdict.rules import Rules
from attlas.catalogue import QUICK_METHODS, REMOVALS
from attlas.errors import UnknownNameError, UsageError
from attlas.measures import MEASURES, PAIRS, Measure
from attlas.methods import METHODS, Method
from attlas.trials import TRIALS

DEFAULT_REMOVALS = ("delete", "mask", "knock_out")
VERDICT_REMOVALS = ("delete", "mask", "pad", "zero_embedding")  # on the first two possible ones
EXPENSIVE_REMOVALS = ("knock_out", "zero_embedding")
RANDOM = "random_scores"
QUICK_MEASURES = ("location", "direction", "auprc")
QUICK_PAIRS = 4
NOT_IN_TEXTS = ("training data", "conllu")  # a trial may need these, and texts do not hold them
LEAST = {"shuffles": 2, "pairs": 2, "texts_for_expensive": 1, "texts_for_slowest": 2, "seed": 0}


@dataclass(frozen=True)
class AuditSettings:
    """How an audit is run.

    What the verdict rests on is computed on all texts, whatever else is asked for: `pairs` of
    random orders in which the tokens of a text are removed, an order and its reverse. `shuffles`
    is how often the scores of a text are shuffled over its tokens. Expensive methods, removal
    curves with their ceilings and cheap trials run on `texts_for_expensive` texts; expensive
    removals, measures that run the method again and expensive trials on `texts_for_slowest`.
    """

    methods: tuple[str, ...]
    measures: tuple[str, ...]
    trials: tuple[str, ...] = ()
    removals: tuple[str, ...] = DEFAULT_REMOVALS
    pairs: int = PAIRS
    shuffles: int = 5
    texts_for_expensive: int = 50
    texts_for_slowest: int = 50
    seed: int = 0
    truncate: bool = False
    rules: Rules = field(default_factory=Rules)

    def __post_init__(self) -> None:
        for name, least in LEAST.items():
            if getattr(self, name) < least:
                raise UsageError(f"{name} is {least} or more, not {getattr(self, name)}")

    def methods_on(self, rank: int) -> list[Method]:
        """The methods that explain the text of this rank; see `AuditTexts.ranks`."""
        chosen = [METHODS[name] for name in self.methods]
        return [each for each in chosen if each.cost == "cheap" or rank < self.texts_for_expensive]

    def removals_on(self, rank: int) -> list[str]:
        """The removals applied to the text of this rank."""
        return [
            name
            for name in self.removals
            if name not in EXPENSIVE_REMOVALS or rank < self.texts_for_slowest
        ]

    @property
    def measures_of_scores(self) -> list[Measure]:
        """The measures that need no more than the scores of a text."""
        return [MEASURES[name] for name in self.measures if MEASURES[name].ask is None]

    @property
    def measures_of_methods(self) -> list[Measure]:
        """The measures that run the method again, such as sensitivity."""
        return [MEASURES[name] for name in self.measures if MEASURES[name].ask is not None]

    def to_dict(self) -> dict[str, Any]:
        """The settings as JSON."""
        return asdict(self)


def choose_settings(
    methods: Sequence[str] | None,
    measures: Sequence[str] | None,
    trials: Sequence[str] | None,
    removal: Sequence[str] | None,
    quick: bool,
    **options: Any,
) -> AuditSettings:
    """The settings that a user asked for; None stands for the default, or the quick default."""
    usual = _quick_settings() if quick else _full_settings()
    return replace(
        usual,
        methods=_with_random_scores(_names(methods, METHODS, usual.methods)),
        measures=_names(measures, MEASURES, usual.measures),
        trials=_trial_names(trials, usual.trials),
        removals=_removals(removal, usual.removals),
        **{name: value for name, value in options.items() if value is not None},
    )


def _full_settings() -> AuditSettings:
    return AuditSettings(
        tuple(METHODS.names()),
        tuple(MEASURES.names()),
        tuple(each.name for each in TRIALS if not set(each.needs) & set(NOT_IN_TEXTS)),
    )


def _quick_settings() -> AuditSettings:
    return AuditSettings(
        QUICK_METHODS,
        QUICK_MEASURES,
        (),
        VERDICT_REMOVALS[:2],
        pairs=QUICK_PAIRS,
        texts_for_expensive=20,
        texts_for_slowest=20,
    )


def _names(chosen: Iterable[str] | None, known: Any, usual: tuple[str, ...]) -> tuple[str, ...]:
    if chosen is None:
        return usual
    if isinstance(chosen, str):
        raise UsageError(f"give names in a list: [{chosen!r}]")
    return tuple(dict.fromkeys(known[name].name for name in chosen)) or usual


def _trial_names(chosen: Iterable[str] | None, usual: tuple[str, ...]) -> tuple[str, ...]:
    """Unlike other names, an empty list means no trial."""
    return usual if chosen is None else tuple(dict.fromkeys(TRIALS[name].name for name in chosen))


def _with_random_scores(names: tuple[str, ...]) -> tuple[str, ...]:
    return names if RANDOM in names else (*names, RANDOM)


def _removals(chosen: Iterable[str] | None, usual: tuple[str, ...]) -> tuple[str, ...]:
    if chosen is None:
        return usual
    names = tuple(dict.fromkeys([chosen] if isinstance(chosen, str) else chosen))
    for name in names:
        if name not in REMOVALS:
            raise UnknownNameError("removal", name, REMOVALS)
    return names or usual
