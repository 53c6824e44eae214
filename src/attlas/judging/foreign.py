"""Explanations from elsewhere: what they are made of, whatever made them.

Nothing of captum, SHAP or inseq is imported: their objects are known by what they carry.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from attlas.errors import UsageError
from attlas.models.encoding.token_ids import is_number

TAKEN = (
    "an Explanation, a list of numbers, a list of (token, score), a pair (tokens, scores), or an "
    "explanation of SHAP, inseq or captum"
)


@dataclass(frozen=True, eq=False)
class Given:
    """Scores from elsewhere: of these pieces of a text, or of its tokens where none are named.

    `scores` is `[piece]`, or `[piece, choice]` where each class has its own.
    """

    scores: NDArray[np.float64]
    pieces: tuple[str, ...] | None = None
    source: str = "given"
    joined: bool = False  # whether the pieces, put together, are the text
    asked: Mapping[str, Any] = field(default_factory=dict)  # what else they are an answer to


def is_one(given: Any) -> bool:
    """Whether this is one explanation; a list of anything but scores is many."""
    if not isinstance(given, list):
        return True
    return bool(given) and (_is_score(given[0]) or _is_pair(given[0]))


def _is_score(each: Any) -> bool:
    return is_number(each) or isinstance(each, (float, np.floating))


def _is_pair(each: Any) -> bool:
    return (
        isinstance(each, (tuple, list))
        and len(each) == 2
        and isinstance(each[0], str)
        and _is_score(each[1])
    )


def read(given: Any) -> Given:
    """The pieces and scores of one explanation from elsewhere."""
    if hasattr(given, "sequence_attributions"):
        return _of_inseq(given)
    if hasattr(given, "word_attributions") and hasattr(given, "raw_input_ids"):
        return _named(given.raw_input_ids, given.word_attributions, "captum")
    if hasattr(given, "values") and hasattr(given, "data") and not callable(given.values):
        return _of_shap(given)
    if isinstance(given, tuple) and len(given) == 2 and not _is_pair(given):
        return _named(given[0], given[1], "given")
    if isinstance(given, (list, tuple)) and given and all(_is_pair(each) for each in given):
        return _named([each[0] for each in given], [each[1] for each in given], "given")
    return Given(_numbers(given))


def _named(pieces: Any, scores: Any, source: str) -> Given:
    names = tuple(str(piece) for piece in pieces)
    numbers = _numbers(scores)
    if len(names) != len(numbers):
        raise UsageError(f"{len(names)} tokens but {len(numbers)} scores: one for each is needed")
    return Given(numbers, names, source)


def _numbers(scores: Any) -> NDArray[np.float64]:
    """Scores, one for each piece, or a row of them, one for each class."""
    numbers = as_array(scores)
    if numbers.ndim not in (1, 2) or not len(numbers):
        raise UsageError(f"scores are one number for each token, not of shape {numbers.shape}")
    if not np.isfinite(numbers).all():
        raise UsageError("scores must be finite numbers")
    return numbers


def _of_shap(given: Any) -> Given:
    """SHAP's Explanation: of one text, or of a batch of one."""
    data, values = given.data, given.values
    batched = len(data) == 1 and not isinstance(data[0], (str, bytes))
    if batched:
        data, values = data[0], values[0]
    if not all(isinstance(piece, str) for piece in data):
        raise UsageError(
            f"this SHAP explanation is of {len(data)} texts: judge takes one (explanation[0])"
        )
    return replace(_named(data, values, "shap"), joined=True)


def _of_inseq(given: Any) -> Given:
    """inseq's FeatureAttributionOutput, of one text and one token that was written."""
    found: Sequence[Any] = given.sequence_attributions
    if len(found) != 1:
        raise UsageError(f"this inseq output is of {len(found)} texts: judge takes one")
    own = found[0]
    alone = own.source_attributions is None  # a model with a decoder alone reads what it goes on
    read = own.target[: own.attr_pos_start] if alone else own.source
    scores = as_array(own.target_attributions if alone else own.source_attributions)
    if scores.ndim != 2:
        raise UsageError("this inseq output has a score for each feature: give output.aggregate()")
    if scores.shape[1] != 1:
        raise UsageError(
            f"this inseq output is of {scores.shape[1]} written tokens: judge takes one of them"
        )
    pieces = [each.token for each in read]
    asked = {} if alone else {"prefix": ""}
    return replace(_named(pieces, scores[: len(pieces), 0], "inseq"), joined=True, asked=asked)


def as_array(scores: Any) -> NDArray[np.float64]:
    """Numbers as an array, whatever library holds them."""
    found = scores
    for step in ("detach", "cpu", "numpy"):  # a tensor, of torch or of another
        found = getattr(found, step)() if hasattr(found, step) else found
    try:
        return np.asarray(found, dtype=np.float64)
    except (TypeError, ValueError):
        raise UsageError(f"judge takes {TAKEN}, not {type(scores).__name__}") from None
