"""How easily what a finding claims comes about by chance: signs turned over texts, then Holm."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from attlas.auditing.report.figures import agreement_by_text
from attlas.auditing.report.tables import Found
from attlas.auditing.verdict.verdict import A_POINT
from attlas.mathematics.grouping import halves
from attlas.mathematics.significance import holm, sign_flip
from attlas.mathematics.standing import Compared, Evidence, of_texts, text_shares
from attlas.results.support.report_sections import Finding
from attlas.shapes import MethodValues, TextGroups


@dataclass(frozen=True, eq=False)
class HeldOut:
    """The half of the texts on which the verdict was tested, and not its method chosen."""

    found: Found
    evidence: Evidence
    numbers: list[int]
    groups: TextGroups | None


class Chance(NamedTuple):
    """What is claimed, on which texts, and its p-value; None where no text tells."""

    claim: str
    p: float | None


def hold_out(found: Found, removals: Collection[str]) -> HeldOut:
    """The half that `verdict` tests on, where it is given the evidence of these removals."""
    evidence, groups = found.evidence(removals)
    numbers = np.array(found.numbers(removals))
    _, second = halves(len(numbers), groups, found.seed)
    own = None if groups is None else groups[second]
    return HeldOut(found, of_texts(evidence, second), numbers[second].tolist(), own)


def above_shuffled(held: HeldOut, method: str, removal: str) -> Chance:
    """That s of the method is above zero."""
    shares = text_shares(held.evidence, [Compared(method, None, (removal,))])
    return _on_held_out(f"{method} above shuffled scores", shares, held)


def above_weights(held: HeldOut, method: str, reading: str, readings: Sequence[str]) -> Chance:
    """That the reading is a point above the method over all removals, taken out of so many."""
    removals = tuple(held.evidence)
    shares = text_shares(held.evidence, [Compared(name, method, removals) for name in readings])
    point = A_POINT / np.maximum((~np.isnan(shares)).sum(axis=0), 1)  # of each text's share
    claim = f"{reading} a point above {method}, one of {len(readings)} readings"
    return _on_held_out(claim, shares - point, held, readings.index(reading))


def above_other(held: HeldOut, measure: str, removal: str, method: str, other: str) -> Chance:
    """That the method is above the other by a measure of which more is better."""
    rows = held.found.values
    own = rows[(rows["measure"] == measure) & (rows["removal"] == removal)]
    table = own.pivot(index="text", columns="method", values="value")
    values = table.reindex(index=held.numbers, columns=[method, other]).to_numpy(np.float64)
    return _on_held_out(f"{method} above {other}", values[:, :1] - values[:, 1:], held)


def agreement_beside(found: Found, value: float) -> Chance:
    """That methods agree less than this, or more, whichever they do: two-sided, on all texts."""
    texts = agreement_by_text(found)
    above = texts.to_numpy(dtype=np.float64)[:, None] - value
    little = bool(np.nanmean(above) < 0)
    groups = found.of_texts(texts.index.tolist())
    claim = f"τ {'below' if little else 'above'} {value:g}, two-sided"
    one_sided = _chance(claim, -above if little else above, found.seed, groups)
    return one_sided._replace(p=None if one_sided.p is None else min(1.0, 2 * one_sided.p))


def adjust(
    findings: Sequence[Finding], apart: Finding | None
) -> tuple[tuple[Finding, ...], Finding | None]:
    """The findings, and the one that stands apart, with p-values adjusted for being so many.

    What is tested does not depend on what was found, so a finding counts however it turned out.
    """
    lines = [*findings, *([] if apart is None else [apart])]
    p = np.array([np.nan if each.p is None else each.p for each in lines], dtype=np.float64)
    adjusted = [
        each if np.isnan(found) else replace(each, p=float(found))
        for each, found in zip(lines, holm(p), strict=True)
    ]
    return tuple(adjusted[: len(findings)]), None if apart is None else adjusted[-1]


def _on_held_out(claim: str, differences: MethodValues, held: HeldOut, place: int = 0) -> Chance:
    found = _chance(claim, differences, held.found.seed, held.groups, place)
    return found._replace(claim=f"{found.claim} held out")


def _chance(
    claim: str,
    differences: MethodValues,
    seed: int,
    groups: TextGroups | None,
    place: int = 0,
) -> Chance:
    """Whether the differences at a place lie above zero, adjusted over all places."""
    texts = int((~np.isnan(differences[:, place])).sum())
    p = float(sign_flip(differences, seed, groups).adjusted[place])
    plural = "" if texts == 1 else "s"
    return Chance(f"{claim}, on {texts} text{plural}", None if np.isnan(p) else p)
