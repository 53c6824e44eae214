"""What scores add up to: the target, and tokens that hold most of it whatever they mean."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from attlas.shapes import TokenVector
from attlas.tokens import Tokens

LEAST_SHARE = 0.5


class Sink(NamedTuple):
    """A token that holds most of the score, and its share."""

    position: int
    share: float

    def to_dict(self) -> dict[str, Any]:
        """The sink as JSON, for views."""
        return self._asdict()


def find_sinks(tokens: Tokens, scores: TokenVector) -> tuple[Sink, ...]:
    """The first token of the input, or of a decoder's prefix, if it holds over half of the score.

    Scores should have no sign. A single token is never a sink.
    """
    size = np.abs(scores.astype(np.float64))
    total = float(size.sum())
    if total <= 0 or len(tokens) < 2:
        return ()
    shares = [Sink(place, float(size[place]) / total) for place in _firsts(tokens)]
    return tuple(sink for sink in shares if sink.share > LEAST_SHARE)


def _firsts(tokens: Tokens) -> list[int]:
    prefix = [tokens.segments.index("prefix")] if "prefix" in tokens.segments else []
    return list(dict.fromkeys([0, *prefix]))


def sink_notes(tokens: Tokens, sinks: Sequence[Sink]) -> tuple[str, ...]:
    """Notes that say how much the sinks hold, and how to leave them out."""
    return tuple(
        f"The first token {tokens[place]!r} holds {share:.0%} of the score, as an attention sink "
        "does; without_sinks(), --without-sinks, leaves it out."
        for place, share in sinks
    )


def removal_note(tokens: Tokens, sinks: Sequence[Sink]) -> str:
    """A note that says which tokens were left out, and how much they held."""
    told = [f"{tokens[place]!r} (held {share:.0%} of the score)" for place, share in sinks]
    return f"Left out as an attention sink: the first token {', '.join(told)}."


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
