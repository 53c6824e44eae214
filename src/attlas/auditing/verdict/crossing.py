"""Cross-fitting: methods are chosen on one half of the texts and tested on the other, both ways."""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from math import isnan

import numpy as np

from attlas.errors import UsageError
from attlas.mathematics.grouping import halves
from attlas.mathematics.standing import (
    Evidence,
    Locations,
    MethodComparison,
    select_texts,
    standing,
    text_count,
)
from attlas.shapes import TextGroups, TextValues

SPLITS = 5
WEIGHTS, CONTROL, REFERENCE = "the weights", "the control", "the reference"
OTHER = "other_text"  # a control made for each reading of the weights: its scores of another text


@dataclass(frozen=True)
class Roles:
    """Which methods are readings of the weights, and what they are held against."""

    weights: Sequence[str]
    controls: Sequence[str]
    references: Sequence[str]
    circular: Collection[tuple[str, str]] = ()  # references and the removals that do not judge them

    def references_under(self, removal: str) -> list[str]:
        """The references that this removal may judge."""
        return [name for name in self.references if (name, removal) not in self.circular]


@dataclass(frozen=True, eq=False)
class Crossed:
    """What the chosen methods reach on texts that they were not chosen on, and who was chosen."""

    evidence: Evidence  # of WEIGHTS, CONTROL and REFERENCE, as far as there are any
    chosen: Counter[tuple[str, str]]  # (role, name), or (role, name) under a removal

    def name_of(self, role: str, removal: str = "") -> str | None:
        """The method that was chosen most often for a role."""
        own = {name: n for (who, name), n in self.chosen.items() if who == f"{role} {removal}"}
        return max(own, key=own.__getitem__, default=None)


def cross(evidence: Evidence, roles: Roles, groups: TextGroups | None, seed: int) -> list[Crossed]:
    """One result for each split."""
    if text_count(evidence) < 2:
        raise UsageError(f"a verdict needs at least two texts, not {text_count(evidence)}")
    known = _with_weights(evidence, roles)
    return [_cross_once(known, roles, groups, seed * SPLITS + split) for split in range(SPLITS)]


def _with_weights(evidence: Evidence, roles: Roles) -> Evidence:
    """The evidence with a reading of the weights, even if the model refuses all of them.

    A model whose answer never changes has no readout to read. There is nothing to find either, so
    all scores find the same.
    """
    if any(name in own.methods for own in evidence.values() for name in roles.weights):
        return evidence
    if any(np.nan_to_num(own.importance).any() for own in evidence.values()):
        raise UsageError("a verdict on the weights needs a reading of them; there is none")
    return {
        removal: Locations(
            own.best,
            own.importance,
            {**own.methods, roles.weights[0]: np.zeros_like(own.best)},
        )
        for removal, own in evidence.items()
    }


def pool(crossed: Sequence[Crossed]) -> Crossed:
    """The mean over splits on each text."""
    first = crossed[0].evidence
    pooled = {
        removal: Locations(
            own.best,
            own.importance,
            {
                role: np.mean([each.evidence[removal].methods[role] for each in crossed], axis=0)
                for role in own.methods
            },
        )
        for removal, own in first.items()
    }
    return Crossed(pooled, sum((each.chosen for each in crossed), Counter()))


def _cross_once(evidence: Evidence, roles: Roles, groups: TextGroups | None, seed: int) -> Crossed:
    both = halves(text_count(evidence), groups, seed)
    chosen: Counter[tuple[str, str]] = Counter()
    values: dict[str, dict[str, TextValues]] = {removal: {} for removal in evidence}
    for half, other in (both, both[::-1]):
        known = select_texts(evidence, half)
        method = _best(known, roles.weights, tuple(evidence))
        assert method is not None
        chosen[f"{WEIGHTS} ", method] += 1
        for removal, own in evidence.items():
            controls = [f"{OTHER} {method}" if each == OTHER else each for each in roles.controls]
            names = {
                WEIGHTS: method,
                CONTROL: _best(known, controls, (removal,)),
                REFERENCE: _best(known, roles.references_under(removal), (removal,)),
            }
            for role, name in names.items():
                if name is None:
                    continue
                found = values[removal].setdefault(role, np.full(len(own.best), np.nan))
                found[other] = own.methods[name][other]
                chosen[f"{role} {removal}", name] += 1
    return Crossed(
        {
            removal: Locations(own.best, own.importance, values[removal])
            for removal, own in evidence.items()
        },
        chosen,
    )


def _best(evidence: Evidence, names: Sequence[str], removals: tuple[str, ...]) -> str | None:
    """The method that stands highest on these texts, if any has values."""
    known = [name for name in names if all(name in evidence[each].methods for each in removals)]
    reached = {name: standing(evidence, MethodComparison(name, None, removals)) for name in known}
    ranked: Mapping[str, float] = {
        name: -float("inf") if isnan(s) else s for name, s in reached.items()
    }
    return max(known, key=ranked.__getitem__, default=None)
