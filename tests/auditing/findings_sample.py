"""What an audit found on texts whose figures are given, without a model."""

import numpy as np
import pandas as pd

from attlas.auditing.collected import Collected

REMOVALS = ("delete", "mask")
AIMS = ("comprehensiveness", "sufficiency")
METHODS = ("raw_attention", "alti", "decompx")  # of W, V and P
SHUFFLED, CEILING, CONTROL = "shuffled", "ceiling", "frequency"


def draw_figures(random, texts, shift=0.0):
    """Figures by (measure, removal, method); methods are about `shift` better than shuffled."""
    figures = {}
    for removal in REMOVALS:
        for measure, sign in zip(AIMS, (1.0, -1.0), strict=True):
            chance = random.uniform(0.3, 0.5, size=texts)
            figures[measure, removal, SHUFFLED] = chance
            figures[measure, removal, CEILING] = chance + sign * random.uniform(0.3, 0.5, texts)
            for name in (*METHODS, CONTROL):
                gain = random.normal(shift if name in METHODS else 0.0, 0.1, size=texts)
                figures[measure, removal, name] = chance + sign * gain
    figures["auprc", "", SHUFFLED] = np.full(texts, 0.25)
    for name in METHODS:
        figures["auprc", "", name] = 0.25 + random.normal(shift, 0.1, size=texts)
    return figures


def collected_of(figures, kendall, groups=None, seed=0):
    """Such figures, and Kendall's τ between every two methods on each text, as an audit has them.

    What is not a number has no row.
    """
    rows = [
        (text, method, measure, removal, value, np.nan)
        for (measure, removal, method), values in figures.items()
        for text, value in enumerate(values)
        if not np.isnan(value)
    ]
    columns = ["text", "method", "measure", "removal", "value", "shuffled"]
    pairs = [(one, other) for one in METHODS for other in METHODS if one < other]
    alike = [(text, *pair, tau, tau, tau) for text, tau in enumerate(kendall) for pair in pairs]
    return Collected(
        pd.DataFrame(rows, columns=columns),
        pd.DataFrame(columns=["text", "method", "measure", "removal", "share", "value"]),
        pd.DataFrame(alike, columns=["text", "one", "other", "kendall", "top", "overlap"]),
        pd.DataFrame(columns=["text", "method", "scores"]),
        groups,
        seed,
    )
