"""How far rankings of tokens agree: figures of texts, by class and by head, plots, a sentence."""

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
from attlas.trials.support.findings import estimate_mean, estimates_as_json, in_words

SCORES = ("attention", "gradient", "full gradient", "leave-one-out")
PAIRS = {
    f"{SCORES[one]} and {SCORES[other]}": (one, other)
    for one, other in ((0, 1), (0, 2), (0, 3), (1, 3), (2, 3))
}
WITH_GRADIENT, _, WITH_LEFT_OUT, YARDSTICK, _ = PAIRS
MOST_CLASSES = 10  # with more, each would have too few texts
SIGNIFICANT = 0.05

Figures = Mapping[str, TextValues]


def tau(pair: str) -> str:
    """The name of the figure for Kendall's τ of a pair."""
    return f"τ of {pair}"


def figures_of(scores: MethodScores, share: float) -> dict[str, float]:
    """The figures of one text, from a row of scores for each of SCORES; NaN below two tokens."""
    tokens = scores.shape[1]
    if tokens < 2:
        names = [name(pair) for pair in PAIRS for name in (tau, _top, _biased)]
        return dict.fromkeys((*names, "top overlap by chance"), np.nan)
    count = ceil(round(share * tokens, 9))  # 0.28 of 25 is 7, not 8
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
    """The p-value of τ for each pair, as in the paper."""
    varied = [len(set(row.tolist())) > 1 for row in scores]
    return [
        float(kendalltau(scores[one], scores[other]).pvalue)
        if varied[one] and varied[other]
        else np.nan
        for one, other in PAIRS.values()
    ]


def significant_shares(p_values: NDArray[np.float64]) -> dict[str, float | None]:
    """For each pair, the share of texts with p ≤ 0.05; `p_values` are `[text, pair]`.

    It grows with the length of the texts, and serves only for comparison with the paper.
    """
    shares: dict[str, float | None] = {}
    for pair, column in zip(PAIRS, p_values.T, strict=True):
        known = column[~np.isnan(column)]
        shares[pair] = float((known <= SIGNIFICANT).mean()) if len(known) else None
    return shares


def by_class(
    figures: Figures, p_values: NDArray[np.float64], labels: Sequence[str]
) -> dict[str, Any]:
    """For each predicted class: its number of texts, the τs and their significant shares.

    Empty if there are too many classes.
    """
    names = sorted(set(labels))
    if len(names) > MOST_CLASSES:
        return {}
    found = {}
    for name in names:
        own = np.array([label == name for label in labels])
        found[name] = {
            "texts": int(own.sum()),
            "estimates": estimates_as_json({tau(pair): figures[tau(pair)][own] for pair in PAIRS}),
            "significant": significant_shares(p_values[own]),
        }
    return found


def taus_of_heads(scores: MethodScores) -> NDArray[np.float64]:
    """τ of each head with the gradient and with leave-one-out, `[head, 2]`.

    The rows of the heads come after those of SCORES.
    """
    if scores.shape[1] < 2:
        return np.full((len(scores) - len(SCORES), 2), np.nan)
    columns = [SCORES.index("gradient"), SCORES.index("leave-one-out")]
    found: NDArray[np.float64] = kendall_matrix(scores)[len(SCORES) :, columns]
    return found


def by_head(taus: NDArray[np.float64], sites: Sequence[Site]) -> list[dict[str, Any]]:
    """The mean τ of each head, from `[text, head, 2]`; the heads are in the order of the sites."""
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
    """The outcome in words."""
    first, second, third = (
        estimate_mean(figures[tau(pair)]) for pair in (WITH_GRADIENT, WITH_LEFT_OUT, YARDSTICK)
    )
    if first is None and second is None:
        return "No text has tokens enough to compare rankings."
    return (
        f"Attention's ranking of the tokens agrees with the gradient's by τ = {in_words(first)} "
        f"and with leave-one-out's by {in_words(second)}; those two agree by {in_words(third)}."
    )


def plots_of(
    figures: Figures, classes: Mapping[str, Any], heads: Sequence[Mapping[str, Any]]
) -> tuple[plots.Plot, ...]:
    """τ of each pair, by class, and by head."""
    found = estimates_as_json({pair: figures[tau(pair)] for pair in PAIRS})
    drawn = [
        plots.bars(
            "How far two rankings of the tokens agree",
            {pair: each["mean"] for pair, each in found.items()},
            intervals={pair: (each["low"], each["high"]) for pair, each in found.items()},
            x_label="mean of Kendall's τ",
            reading="1 is the same ranking and 0 no agreement. The last two bars show how far "
            "views of the model that use no attention agree.",
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
        reading="The mean of Kendall's τ, at the position that is read. The best of many heads "
        "would do less well on other texts.",
    )
