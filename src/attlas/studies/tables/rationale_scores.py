"""How well methods find marked words, and what masking tokens does: claims, tables, plots."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from attlas.results import Claim, ComparedTable
from attlas.results.support import plots
from attlas.results.support.report_sections import Figure, Number
from attlas.studies.support.findings import (
    at_least,
    compared,
    decided,
    in_share,
    known_means,
    over_seeds,
    share_of,
    untested,
)
from attlas.studies.support.several_models import over_models, what_varies

SOURCE = "Chefer et al. 2021"
OURS = "lrp_relevance"  # the method of the paper of CVPR
GENERIC = "generic_relevance"  # that of ICCV
BASELINES = ("raw_attention", "attention_rollout")
# In the figures, as many as lines can be told apart; the tables have all.
DRAWN = (OURS, GENERIC, *BASELINES, "attn_lrp", "random_scores")
SHARES = tuple(share / 10 for share in range(1, 10))  # of the tokens that are masked
F1_READING = "The F1 of the highest tokens with the tokens that people marked, a mean over texts."

Found = dict[str, list[Mapping[str, Any]]]  # by method, for each model, what was measured


def claims_on(found: Found, tops: Sequence[int]) -> list[Claim]:
    """The claims of the papers, decided text by text, or model by model where there are several."""
    claims = []
    for method, paper in ((OURS, "CVPR 2021"), (GENERIC, "ICCV 2021")):
        for rival in BASELINES:
            claims += [
                _better_f1(found, tops, method, rival, paper),
                _better_auc(found, method, rival, paper, "positive"),
                _better_auc(found, method, rival, paper, "negative"),
            ]
    return claims


def _better_f1(found: Found, tops: Sequence[int], method: str, rival: str, paper: str) -> Claim:
    said = f"The highest tokens of {method} are marked more often than those of {rival}"
    source = f"{SOURCE}, {paper}, ERASER movies (figure)"
    if method not in found or rival not in found:
        return untested(said, source, f"{method} or {rival} was not run")
    one, other = (f1_means(found[name]) for name in (method, rival))
    sizes = ~np.isnan(one[0]) & ~np.isnan(other[0])
    apart = [over_seeds((one - other)[:, size].tolist()) for size in np.flatnonzero(sizes)]
    wins = share_of([bool((_low(each) or 0.0) > 0) for each in apart])
    return decided(
        said,
        source,
        in_share("a higher mean token F1 at every number of tokens, its interval over models too"),
        wins,
        found="The figure is the share of these numbers. The mean over them is "
        f"{np.nanmean(one):.3f} against {np.nanmean(other):.3f}.",
        over=f"{len(tops)} sizes",
    )


def f1_means(models: Sequence[Mapping[str, Any]]) -> NDArray[np.float64]:
    """The mean token F1 over texts, `[model, size]`."""
    return np.stack([known_means(each["f1"]) for each in models])


def _low(figure: Figure) -> Number:
    return figure.value if figure.low is None else figure.low


def _better_auc(found: Found, method: str, rival: str, paper: str, side: str) -> Claim:
    first = "highest" if side == "positive" else "lowest"
    move = "falls faster" if side == "positive" else "stays longer"
    said = f"With its {first} tokens masked first, the prediction {move} by {method} than {rival}"
    source = f"{SOURCE}, {paper}, {side} perturbation (of pictures)"
    if method not in found or rival not in found:
        return untested(said, source, f"{method} or {rival} was not run")
    one, other = ([_areas(each[side]) for each in found[name]] for name in (method, rival))
    better = [b - a if side == "positive" else a - b for a, b in zip(one, other, strict=True)]
    return decided(
        said,
        source,
        at_least(0.0),
        over_models(better),
        found="The figure is the difference of the areas under the curve, in favour of the first.",
        over=what_varies(better),
    )


def _areas(rows: Sequence[Sequence[float | None]]) -> NDArray[np.float64]:
    """The mean over points of each text."""
    mean: NDArray[np.float64] = np.array(rows, dtype=np.float64).mean(axis=1)
    return mean


def score_tables(found: Found, tops: Sequence[int]) -> list[ComparedTable]:
    """Token F1 at the middle size, and the areas under perturbation, of all methods."""
    middle = len(tops) // 2
    over = what_varies(next(iter(found.values()), ()))
    f1 = {
        name: over_models([[row[middle] for row in each["f1"]] for each in models])
        for name, models in found.items()
    }
    made = [compared(f"Token F1 of the {tops[middle]} highest tokens", F1_READING, f1, {}, over)]
    for side in ("positive", "negative"):
        better = "lower" if side == "positive" else "higher"
        reading = (
            f"The mean probability of the prediction while tokens are masked: {better} is better."
        )
        ours = {
            name: over_models([_areas(each[side]) for each in models])
            for name, models in found.items()
        }
        made.append(compared(f"{side} perturbation", reading, ours, {}, over))
    return made


def score_curves(every: Found, tops: Sequence[int]) -> list[plots.Plot]:
    """Token F1 by size, and perturbation by share, of the methods that are drawn."""
    found = {name: every[name] for name in DRAWN if name in every}
    made = [
        plots.curve(
            "Token F1 by number of tokens",
            list(tops),
            {name: f1_means(each).mean(axis=0) for name, each in found.items()},
            x_label="highest tokens",
            y_label="token F1",
            reading="Higher: the highest tokens are more often those that people marked.",
        )
    ]
    for side in ("positive", "negative"):
        first = "highest" if side == "positive" else "lowest"
        made.append(
            plots.curve(
                f"{side} perturbation",
                list(SHARES),
                {
                    name: np.mean([known_means(each[side]) for each in models], axis=0)
                    for name, models in found.items()
                },
                x_label=f"share of tokens masked, {first} first",
                y_label="probability of the prediction",
                reading=f"{'Lower' if side == 'positive' else 'Higher'} is better.",
            )
        )
    return made
