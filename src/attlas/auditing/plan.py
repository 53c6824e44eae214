"""The plan of an audit: its texts and settings. Mistakes show here, before any work is done."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import ceil
from pathlib import Path
from shlex import quote
from time import time
from typing import Any

from attlas.auditing.settings import VERDICT_REMOVALS, AuditSettings, choose_settings
from attlas.auditing.texts import AuditTexts, read_training, usable_texts
from attlas.auditing.verdict.rules import Rules
from attlas.data.read_examples import ReadData, read_examples
from attlas.errors import AttlasError, UsageError
from attlas.measures import Measure
from attlas.methods import METHODS
from attlas.models.encoding.request import Request
from attlas.models.facts.fingerprint import identity
from attlas.models.load import load
from attlas.models.subject import Subject, check_subject
from attlas.removing.operators import mask_id
from attlas.removing.removal import check_removal
from attlas.trials import TRIALS
from attlas.version import __version__

QUICK_COUNT = 60


@dataclass(frozen=True, eq=False)
class AuditCommand:
    """The command of an audit, without options that were left at their default.

    Data in memory have no name, and what can only be set from Python has no option.
    """

    options: Mapping[str, Any]
    drawn: int  # rows of the data
    total: int | None  # rows that they were drawn from; None if there is no end of them
    has_name: bool  # whether the data are not in memory

    def __str__(self) -> str:
        words = [_option(name, value) for name, value in self.options.items()]
        return " ".join(["attlas audit", *filter(None, words)])

    def with_more(self, times: float) -> str:
        """How to audit so many times the texts, or all that there are; empty if none are left."""
        if self.total is not None and self.total <= self.drawn:
            return ""
        wanted = ceil(times * self.drawn)
        count = wanted if self.total is None else min(wanted, self.total)
        which = f"about {count:,} texts" if count != self.total else f"all {count:,} texts"
        of = f" of the {self.total:,}" if self.total is not None and count < self.total else ""
        quick = ", without `--quick`" if self.options["quick"] else ""
        if not self.has_name:
            return f"Audit {which}{of}{quick}: `count={count}`."
        options = {**self.options, "quick": False, "count": None if count == self.total else count}
        return f"Audit {which}{of}{quick}: `{replace(self, options=options)}`"


@dataclass(frozen=True, eq=False)
class AuditPlan:
    """What an audit will do: its texts and its settings."""

    texts: AuditTexts
    settings: AuditSettings
    source: str  # the name of the data
    digest: str  # of the data
    command: AuditCommand  # prints the same report
    started: float  # when planning began, in seconds
    training: ReadData | None = None  # texts to train on again

    @cached_property
    def batches(self) -> list[list[int]]:
        """The numbers of the texts that are worked on together."""
        return self.texts.batches(self.settings.texts_for_expensive)

    @cached_property
    def verdict_removals(self) -> tuple[str, ...]:
        """The removals that the verdict rests on: the first two that the model allows."""
        refused = {how: _why_not(self.texts.subject, how) for how in VERDICT_REMOVALS}
        allowed = [how for how, reason in refused.items() if not reason]
        if not allowed:
            raise UsageError(f"no token can be removed: {'; '.join(refused.values())}")
        return tuple(allowed[:2])

    @property
    def removals(self) -> tuple[str, ...]:
        """All removals, those of the verdict first."""
        return tuple(dict.fromkeys([*self.verdict_removals, *self.settings.removals]))

    @cached_property
    def robustness(self) -> list[tuple[Measure, str]]:
        """Each measure that runs a method again, with each cheap method."""
        edited = any(each.fields.get("revised_text") for each in self.texts.examples)
        measures = self.settings.measures_of_methods
        applicable = [each for each in measures if "edits" not in each.needs or edited]
        cheap = [name for name in self.settings.methods if METHODS[name].cost == "cheap"]
        return [(measure, name) for measure in applicable for name in cheap]

    def identity(self) -> dict[str, Any]:
        """Everything that the figures depend on."""
        subject = self.texts.subject
        return {
            "attlas": __version__,
            "model": subject.name,
            **identity(subject),
            "data": self.source,
            "texts": self.digest,
            **({} if self.training is None else {"training": self.training.fingerprint}),
            **self.settings.to_dict(),
        }


def _why_not(subject: Subject, how: str) -> str:
    """Why tokens cannot be removed in this way; empty if they can."""
    try:
        check_removal(subject, how)
        if how == "mask" and not subject.reads_images:
            mask_id(subject)
    except AttlasError as problem:
        return str(problem)
    return ""


def plan_audit(
    subject: Subject | None,
    data: Any,
    methods: Sequence[str] | None,
    measures: Sequence[str] | None,
    trials: Sequence[str] | None,
    *,
    count: int | None = None,
    removal: Sequence[str] | None = None,
    truncate: bool = False,
    quick: bool = False,
    seed: int = 0,
    rules: Rules | None = None,
    shuffles: int | None = None,
    texts_for_expensive: int | None = None,
    texts_for_slowest: int | None = None,
    pairs: int | None = None,
    retrain: Any = None,
    **columns: str | None,
) -> AuditPlan:
    """Read the data and check everything that was asked for; see `audit` for the arguments."""
    started = time()
    settings = choose_settings(
        methods, measures, trials, removal, quick,
        seed=seed, truncate=truncate, rules=rules, shuffles=shuffles, pairs=pairs,
        texts_for_expensive=texts_for_expensive, texts_for_slowest=texts_for_slowest,
    )  # fmt: skip
    chosen = load() if subject is None else subject
    check_subject(chosen, "audit")
    most = QUICK_COUNT if quick and count is None else count
    read = read_examples(data, count=most, seed=seed, **columns)
    texts = usable_texts(chosen, read, Request(truncate=truncate), seed)
    training = None if retrain is None else read_training(retrain)
    settings = replace(settings, trials=_with_training(settings.trials, training, texts))
    options = {
        **{"model": chosen.name, "data": read.source, **read.columns},
        **{"split": columns.get("split"), "count": count, "quick": quick, "truncate": truncate},
        **{"method": methods, "measure": measures, "removal": removal, "trial": trials},
        **{name: _changed(settings.rules, name) for name in ("floor", "margin")},
        "retrain": retrain if isinstance(retrain, str) else None,
        "seed": seed,
    }
    has_name = isinstance(data, (str, Path))
    command = AuditCommand(options, len(read.examples), read.total, has_name)
    return AuditPlan(texts, settings, read.source, read.fingerprint, command, started, training)


def _with_training(
    trials: Sequence[str], training: ReadData | None, texts: AuditTexts
) -> tuple[str, ...]:
    """The trials of an audit, with those that train if there are texts to train on."""
    learning = [each.name for each in TRIALS if "training data" in each.needs]
    if training is None:
        for name in set(trials) & set(learning):
            raise UsageError(f"{name} needs texts to train on: name them (retrain=, --retrain)")
        return tuple(trials)
    if texts.gold is None:
        raise UsageError(
            f"retrain needs texts with labels that the model predicts, and {texts.subject.name} "
            "predicts none of those in the data"
        )
    return tuple(dict.fromkeys([*trials, *learning]))


def _changed(rules: Rules, name: str) -> float | None:
    """A threshold, if it is not the usual one."""
    value: float = getattr(rules, name)
    return None if value == getattr(Rules, name) else value


def _option(name: str, value: Any) -> str:
    """An option as it is typed; empty if it was not chosen. No trial at all is a choice too."""
    if value is None or value is False or (value == [] and name != "trial"):
        return ""
    if value is True:
        return f"--{name}"
    values = [value] if isinstance(value, (str, int, float)) else list(value) or ["none"]
    return " ".join(f"--{name} {quote(str(each))}" for each in values)
