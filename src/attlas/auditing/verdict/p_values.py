"""The p-values of findings: sign-flip tests over texts, adjusted by Holm's method."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from attlas.auditing.collected import Collected
from attlas.auditing.verdict.verdict import A_POINT
from attlas.mathematics.grouping import halves
from attlas.mathematics.significance import holm, sign_flip
from attlas.mathematics.standing import Evidence, MethodComparison, select_texts, text_shares
from attlas.results.support.report_sections import Finding
from attlas.shapes import MethodValues, TextGroups


@dataclass(frozen=True, eq=False)
class HeldOut:
    """The half of the texts that the verdict was tested on, and its method not chosen on."""

    collected: Collected
    evidence: Evidence
    numbers: list[int]
    groups: TextGroups | None


class Chance(NamedTuple):
    """A claim, with the number of its texts, and its p-value; None if no text bears on it."""

    claim: str
    p: float | None


def hold_out(collected: Collected, removals: Collection[str]) -> HeldOut:
    """The half that `verdict` tests on, given the evidence of these removals."""
    evidence, groups = collected.evidence(removals)
    numbers = np.array(collected.tested_texts(removals))
    _, second = halves(len(numbers), groups, collected.seed)
    own = None if groups is None else groups[second]
    return HeldOut(collected, select_texts(evidence, second), numbers[second].tolist(), own)


def above_shuffled(held: HeldOut, method: str, removal: str) -> Chance:
    """Test whether s of the method is above zero."""
    shares = text_shares(held.evidence, [MethodComparison(method, None, (removal,))])
    return _on_held_out(f"{method} above shuffled scores", shares, held)


def above_weights(held: HeldOut, method: str, reading: str, readings: Sequence[str]) -> Chance:
    """Test whether a reading, one of several, is a point above the method over all removals."""
    removals = tuple(held.evidence)
    shares = text_shares(
        held.evidence, [MethodComparison(name, method, removals) for name in readings]
    )
    point = A_POINT / np.maximum((~np.isnan(shares)).sum(axis=0), 1)  # of each text's share
    claim = f"{reading} a point above {method}, one of {len(readings)} readings"
    return _on_held_out(claim, shares - point, held, readings.index(reading))


def above_other(held: HeldOut, measure: str, removal: str, method: str, other: str) -> Chance:
    """Test whether the method is above the other by a measure of which more is better."""
    table = held.collected.of_measure(measure, removal)
    values = table.reindex(index=held.numbers, columns=[method, other]).to_numpy(np.float64)
    return _on_held_out(f"{method} above {other}", values[:, :1] - values[:, 1:], held)


def agreement_beside(collected: Collected, value: float) -> Chance:
    """Test, two-sided and on all texts, whether methods agree less or more than this."""
    texts = collected.agreement_by_text()
    above = texts.to_numpy(dtype=np.float64)[:, None] - value
    little = bool(np.nanmean(above) < 0)
    groups = collected.groups_of(texts.index.tolist())
    claim = f"τ {'below' if little else 'above'} {value:g}, two-sided"
    one_sided = _chance(claim, -above if little else above, collected.seed, groups)
    return one_sided._replace(p=None if one_sided.p is None else min(1.0, 2 * one_sided.p))


def adjust(
    findings: Sequence[Finding], apart: Finding | None
) -> tuple[tuple[Finding, ...], Finding | None]:
    """Adjust the p-values of all findings, and of the one that stands apart, for their number.

    What is tested does not depend on the results, so every finding counts, whatever its result.
    """
    lines = [*findings, *([] if apart is None else [apart])]
    p = np.array([np.nan if each.p is None else each.p for each in lines], dtype=np.float64)
    adjusted = [
        each if np.isnan(own) else replace(each, p=float(own))
        for each, own in zip(lines, holm(p), strict=True)
    ]
    return tuple(adjusted[: len(findings)]), None if apart is None else adjusted[-1]


def _on_held_out(claim: str, differences: MethodValues, held: HeldOut, place: int = 0) -> Chance:
    chance = _chance(claim, differences, held.collected.seed, held.groups, place)
    return chance._replace(claim=f"{chance.claim} held out")


def _chance(
    claim: str,
    differences: MethodValues,
    seed: int,
    groups: TextGroups | None,
    place: int = 0,
) -> Chance:
    """Test whether the differences at a place lie above zero, adjusted over all places."""
    texts = int((~np.isnan(differences[:, place])).sum())
    p = float(sign_flip(differences, seed, groups).adjusted[place])
    plural = "" if texts == 1 else "s"
    return Chance(f"{claim}, on {texts} text{plural}", None if np.isnan(p) else p)
