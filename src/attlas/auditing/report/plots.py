"""The data of the plots of a report."""

from collections.abc import Collection, Sequence
from itertools import combinations

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.stats import rankdata

from attlas.auditing.collected import Collected
from attlas.auditing.verdict.verdict import as_figure
from attlas.auditing.work.explained import CEILING, FREQUENCY, POSITION, SHUFFLED
from attlas.auditing.work.removed_tokens import SHARES
from attlas.mathematics.intervals import LEVEL, Estimate, bootstrap_means
from attlas.mathematics.standing import MethodComparison, standings
from attlas.measures import MEASURES, is_circular
from attlas.methods import METHODS
from attlas.removing.ceilings import AIMS
from attlas.removing.unusualness import STRANGE
from attlas.results.support.report_sections import (
    Agreement,
    Line,
    Panel,
    RemovalPair,
    Standing,
    UnusualTexts,
)

DRAWS = 1000
AXIS = "share of the tokens removed or kept"


def make_standings(collected: Collected) -> tuple[Standing, ...]:
    """How much of what matters every method finds, under each removal of the verdict."""
    tested = collected.tested()
    kept = []
    for removal, known in tested.evidence.items():
        families = {name: METHODS[name].family for name in collected.methods}
        families |= dict.fromkeys(tested.roles.references, "reference")
        families |= dict.fromkeys((POSITION, FREQUENCY), "control")
        names = [
            name
            for name in families
            if name in known.methods
            and (name, removal) not in tested.roles.circular
            and not _is_circular("location", name, removal)
        ]
        asked = [MethodComparison(name, None, (removal,)) for name in names]
        estimates = standings(tested.evidence, asked, collected.seed, tested.groups)
        for name, estimate in zip(names, estimates, strict=True):
            kept.append(Standing(name, families[name], removal, as_figure(estimate)))
    return tuple(kept)


def make_panels(collected: Collected, removals: Collection[str]) -> tuple[Panel, ...]:
    """The curves of each measure under these removals."""
    panels = []
    for removal in removals:
        for measure in AIMS:
            rows = collected.curves
            own = rows[(rows["measure"] == measure) & (rows["removal"] == removal)]
            if len(own):
                panels.append(_panel(collected, own, measure, removal))
    return tuple(panels)


def _panel(collected: Collected, rows: pd.DataFrame, measure: str, removal: str) -> Panel:
    table = rows.pivot(index="text", columns=["method", "share"], values="value")
    drawn = set(table.columns.get_level_values(0))
    lines = []
    for name in (*collected.methods, SHUFFLED, CEILING):
        if name not in drawn or _is_circular(measure, name, removal):
            continue
        values = table.reindex(columns=[(name, share) for share in SHARES]).to_numpy(np.float64)
        means = bootstrap_means(values, collected.seed, collected.groups_of(table.index.tolist()))
        family = "control" if name in (SHUFFLED, CEILING) else METHODS[name].family
        mean, low, high = (
            tuple(getattr(each, what) for each in means) for what in ("mean", "low", "high")
        )
        lines.append(Line(name, family, mean, low, high))
    return Panel(measure, removal, MEASURES[measure].better, AXIS, SHARES, tuple(lines))


def _is_circular(measure: str, name: str, removal: str) -> bool:
    return name in METHODS.names() and is_circular(measure, name, removal)


def make_agreement(collected: Collected) -> tuple[Agreement | None, Estimate | None]:
    """How similar every two methods are, and the mean over those that use attention."""
    rows = collected.agreement
    if not len(rows):
        return None, None
    known = {*rows["one"].unique(), *rows["other"].unique()}
    names = [name for name in collected.methods if name in known]
    means = rows.groupby(["one", "other"], as_index=False)[["kendall", "top", "overlap"]].mean()
    kinds = {"Kendall τ": "kendall", "top fifth in common": "top", "rank-biased overlap": "overlap"}
    by = {shown: _matrix(means, name, names) for shown, name in kinds.items()}
    texts = collected.agreement_by_text()
    if not len(texts):
        return Agreement(tuple(names), by), None
    groups = collected.groups_of(texts.index.tolist())
    (mean,) = bootstrap_means(texts.to_numpy(dtype=np.float64)[:, None], collected.seed, groups)
    sentence = (
        f"Kendall's τ between two of the {len(collected.attention_methods)} methods that use "
        f"attention is {mean.mean:.2f} on average ({mean.low:.2f} to {mean.high:.2f}, "
        f"{mean.inputs} texts)."
    )
    return Agreement(tuple(names), by, sentence), mean


def _matrix(
    means: pd.DataFrame, kind: str, names: Sequence[str]
) -> tuple[tuple[float | None, ...], ...]:
    rows = means[["one", "other", kind]].to_numpy()
    known = {frozenset((one, other)): float(value) for one, other, value in rows}
    return tuple(
        tuple(1.0 if one == other else known.get(frozenset((one, other))) for other in names)
        for one in names
    )


def make_removal_pairs(collected: Collected) -> tuple[RemovalPair, ...]:
    """How similarly every two removals rank the methods, with an interval over texts."""
    pairs = []
    for one, other in combinations(collected.removals, 2):
        for measure in AIMS:
            estimate = _order_agreement(collected, measure, one, other)
            if estimate is not None:
                pairs.append(RemovalPair(measure, one, other, as_figure(estimate)))
    return tuple(pairs)


def make_unusual(collected: Collected) -> tuple[UnusualTexts, ...]:
    """How strange texts changed by each removal are to the model, and what to do if they are."""
    figures = {}
    for each in collected.unusual:
        groups = collected.groups_of(each.values.index.tolist())
        array = each.values.to_numpy(dtype=np.float64)[:, None]
        (figures[each.removal],) = bootstrap_means(array, collected.seed, groups)
    strange = {removal for removal, figure in figures.items() if figure.low > STRANGE}
    others = [removal for removal in figures if removal not in strange]
    return tuple(
        UnusualTexts(
            each.removal,
            as_figure(figures[each.removal]),
            each.usual,
            _remedy(others) if each.removal in strange else "",
        )
        for each in collected.unusual
    )


def _remedy(others: Sequence[str]) -> str:
    """What to do about a removal whose texts are strange to the model."""
    training = (
        "fine-tune the model with random words masked and audit it by mask "
        "(attlas audit --masked-finetune DATA)"
    )
    if not others:
        return f"such texts are strange to this model: {training}"
    return f"such texts are strange to this model: trust {' and '.join(others)} more, or {training}"


def _order_agreement(collected: Collected, measure: str, one: str, other: str) -> Estimate | None:
    tables = [collected.of_measure(measure, removal) for removal in (one, other)]
    names = [
        name
        for name in collected.methods
        if all(
            name in table and not is_circular(measure, name, how)
            for table, how in zip(tables, (one, other), strict=True)
        )
    ]
    texts = tables[0].index.intersection(tables[1].index)
    if len(names) < 3 or len(texts) < 2:
        return None
    arrays = [table.loc[texts, names].to_numpy(dtype=np.float64) for table in tables]
    even = np.full(len(texts), 1 / len(texts))
    drawn = np.random.default_rng(collected.seed).multinomial(len(texts), even, size=DRAWS)
    weights = np.concatenate([np.ones((1, len(texts))), drawn])
    ranks = [_ranks(array, weights) for array in arrays]
    alike = (ranks[0] * ranks[1]).sum(axis=1)
    if np.isnan(alike[0]) or np.isnan(alike[1:]).all():  # all methods are equally good
        return None
    low, high = np.nanquantile(alike[1:], [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    return Estimate(float(alike[0]), float(low), float(high), len(texts))


def _ranks(values: NDArray[np.float64], weights: NDArray[np.float64]) -> NDArray[np.float64]:
    """The ranks of the methods' means in each draw, scaled to mean zero and length one."""
    known = ~np.isnan(values)
    seen = weights @ known
    sums = weights @ np.where(known, values, 0.0)
    means = np.divide(sums, seen, out=np.full(sums.shape, np.nan), where=seen > 0)
    ranks = rankdata(means, axis=1)
    ranks = ranks - ranks.mean(axis=1, keepdims=True)
    norms = np.linalg.norm(ranks, axis=1, keepdims=True)
    scaled: NDArray[np.float64] = ranks / np.where(norms > 0, norms, np.nan)
    return scaled
