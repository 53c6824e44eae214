"""How scores add up to the target."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np


def score_sum(details: Mapping[str, Any], total: float) -> dict[str, Any] | None:
    """What a view shows of the sum of the scores; None if the method says nothing about it.

    From a `base` value the scores add up to the target. Without one, `rest_of` says what holds the
    part of the target that no token has.
    """
    base, rest = details.get("base"), details.get("rest_of")
    if not isinstance(base, float) and not rest:
        return None
    known = {"base": base, "of": str(details.get("base_of", ""))} if not rest else {"rest_of": rest}
    return {**known, "scores": total}


def mean_details(rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The details of the mean of some rows: all say the same of what their scores add up to."""
    if not rows:
        return {}
    bases = [row["base"] for row in rows if isinstance(row.get("base"), float)]
    known = {key: rows[0][key] for key in ("base_of", "rest_of") if key in rows[0]}
    return known | ({"base": float(np.mean(bases))} if len(bases) == len(rows) else {})
