"""Attention sinks: first tokens that hold most of the score, whatever they mean."""

from collections.abc import Sequence
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
