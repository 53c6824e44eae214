"""How far orders of tokens agree, over texts: by class and by head, in plots and a sentence."""

from collections.abc import Mapping, Sequence
from math import ceil
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import kendalltau

from attlas.mathematics.rank_agreement import (
    kendall_matrix,
    rank_biased_overlap_matrix,
    top_overlap_matrix,
)
from attlas.results import Site
from attlas.results.support import plots
from attlas.shapes import MethodScores, TextValues
from attlas.trials.support.findings import estimates_of, mean_of, written

SCORES = ("attention", "gradient", "full gradient", "leave-one-out")
PAIRS = {
    f"{SCORES[one]} and {SCORES[other]}": (one, other)
    for one, other in ((0, 1), (0, 2), (0, 3), (1, 3), (2, 3))
}
WITH_GRADIENT, _, WITH_LEFT_OUT, YARDSTICK, _ = PAIRS
MOST_CLASSES = 10  # of more, none would have texts enough
SIGNIFICANT = 0.05

Figures = Mapping[str, TextValues]


def tau(pair: str) -> str:
    """The name of the figure that is Kendall's τ of a pair."""
    return f"τ of {pair}"


def figures_of(scores: MethodScores, share: float) -> dict[str, float]:
    """What the scores of one text come to, a row for each of SCORES; NaN below two tokens."""
    tokens = scores.shape[1]
    if tokens < 2:
        names = [name(pair) for pair in PAIRS for name in (tau, _top, _biased)]
        return dict.fromkeys((*names, "top overlap by chance"), np.nan)
    count = ceil(round(share * tokens, 9))  # 0.28 of 25 is seven
    found = {"top overlap by chance": count / tokens}
    for name, matrix in (
        (tau, kendall_matrix(scores)),
        (_top, top_overlap_matrix(scores, count)),
        (_biased, rank_biased_overlap_matrix(scores)),
    ):
        found |= {name(pair): float(matrix[at]) for pair, at in PAIRS.items()}
    return found


def _top(pair: str) -> str:
    return f"top overlap of {pair}"


def _biased(pair: str) -> str:
    return f"rank-biased overlap of {pair}"


def p_values_of(scores: MethodScores) -> list[float]:
    """Of each pair, how likely a τ so far from zero is by chance, as the paper has it."""
    varied = [len(set(row.tolist())) > 1 for row in scores]
    return [
        float(kendalltau(scores[one], scores[other]).pvalue)
        if varied[one] and varied[other]
        else np.nan
        for one, other in PAIRS.values()
    ]


def significant_shares(p_values: NDArray[np.float64]) -> dict[str, float | None]:
    """Of each pair, the share of texts with p ≤ 0.05; `p_values` are `[text, pair]`.

    It grows with the length of the texts: a figure to hold against the paper's, no more.
    """
    shares: dict[str, float | None] = {}
    for pair, column in zip(PAIRS, p_values.T, strict=True):
        known = column[~np.isnan(column)]
        shares[pair] = float((known <= SIGNIFICANT).mean()) if len(known) else None
    return shares


def by_class(
    figures: Figures, p_values: NDArray[np.float64], labels: Sequence[str]
) -> dict[str, Any]:
    """Of each class that is predicted, its texts, the τs and their significant shares.

    Nothing where there are too many.
    """
    names = sorted(set(labels))
    if len(names) > MOST_CLASSES:
        return {}
    found = {}
    for name in names:
        own = np.array([label == name for label in labels])
        found[name] = {
            "texts": int(own.sum()),
            "estimates": estimates_of({tau(pair): figures[tau(pair)][own] for pair in PAIRS}),
            "significant": significant_shares(p_values[own]),
        }
    return found


def taus_of_heads(scores: MethodScores) -> NDArray[np.float64]:
    """τ of each head with the gradient and with leave-one-out, `[head, 2]`.

    The heads are the rows behind those of SCORES.
    """
    if scores.shape[1] < 2:
        return np.full((len(scores) - len(SCORES), 2), np.nan)
    columns = [SCORES.index("gradient"), SCORES.index("leave-one-out")]
    found: NDArray[np.float64] = kendall_matrix(scores)[len(SCORES) :, columns]
    return found


def by_head(taus: NDArray[np.float64], sites: Sequence[Site]) -> list[dict[str, Any]]:
    """The mean τ of each head, from `[text, head, 2]`, heads site by site."""
    places = [(site, head) for site in sites for head in range(site.heads)]
    return [
        {"site": site.name, "layer": site.layer, "head": head}
        | {
            name: _mean(taus[:, number, column])
            for column, name in enumerate(("gradient", "leave-one-out"))
        }
        for number, (site, head) in enumerate(places)
    ]


def _mean(values: TextValues) -> float | None:
    known = values[~np.isnan(values)]
    return float(known.mean()) if len(known) else None


def sentence_of(figures: Figures) -> str:
    """What was found, in words."""
    first, second, third = (
        mean_of(figures[tau(pair)]) for pair in (WITH_GRADIENT, WITH_LEFT_OUT, YARDSTICK)
    )
    if first is None and second is None:
        return "In no text can the orders of tokens be compared."
    return (
        f"Attention's order of the tokens agrees with the gradient's by τ = {written(first)} and "
        f"with leave-one-out's by {written(second)}; those two agree by {written(third)}."
    )


def plots_of(
    figures: Figures, classes: Mapping[str, Any], heads: Sequence[Mapping[str, Any]]
) -> tuple[plots.Plot, ...]:
    """τ of each pair, by class, and by head."""
    found = estimates_of({pair: figures[tau(pair)] for pair in PAIRS})
    drawn = [
        plots.bars(
            "How far two orders of the tokens agree",
            {pair: each["mean"] for pair, each in found.items()},
            intervals={pair: (each["low"], each["high"]) for pair, each in found.items()},
            x_label="mean of Kendall's τ",
            reading="One: the same order; zero: none in common. The last two bars say how far "
            "such views of a model agree without attention.",
        )
    ]
    if len(classes) > 1:
        drawn.append(_class_table(classes))
    drawn += [_head_matrix(heads, name) for name in ("gradient", "leave-one-out")]
    return tuple(drawn)


def _class_table(classes: Mapping[str, Any]) -> plots.Plot:
    rows = [
        [name, each["texts"]]
        + [each["estimates"].get(tau(pair), {"mean": None})["mean"] for pair in PAIRS]
        for name, each in classes.items()
    ]
    return plots.table(
        "Agreement by what the model predicts",
        ["class", "texts", *PAIRS],
        rows,
        reading="The mean of Kendall's τ over the texts of each class.",
    )


def _head_matrix(heads: Sequence[Mapping[str, Any]], name: str) -> plots.Plot:
    layers = sorted({each["layer"] for each in heads})
    most = max(each["head"] for each in heads) + 1
    known = {(each["layer"], each["head"]): each[name] for each in heads}
    return plots.matrix(
        f"Agreement of each head with {name}",
        [str(layer) for layer in layers],
        [str(head) for head in range(most)],
        [[known.get((layer, head)) for head in range(most)] for layer in layers],
        x_label="head",
        y_label="layer",
        reading="The mean of Kendall's τ, at the position that is read; the best of many heads "
        "is better than it would be on other texts.",
    )
