"""Scores from other libraries or plain lists, moved to the tokens that a model reads.

captum, SHAP and inseq are not imported: their objects are recognised by their attributes.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from attlas.errors import UsageError
from attlas.models.encoding.token_ids import is_number
from attlas.tokens import Span, Tokens, overlap

SPACES = "Ġ▁Ċ"  # what tokenizers write for a space, or the end of a line
INSIDE = "##"  # what they write before a piece that continues a word
AFTER = "</w>"  # and after a piece that ends one
SHOWN = 20  # characters of a text in an error
ACCEPTED = (
    "an Explanation, a list of numbers, a list of (token, score), a pair (tokens, scores), or an "
    "explanation of SHAP, inseq or captum"
)


@dataclass(frozen=True, eq=False)
class ForeignScores:
    """Scores of the pieces of a text, or of its tokens if `pieces` is None.

    `scores` is `[piece]`, or `[piece, choice]` if there are scores for each class.
    """

    scores: NDArray[np.float64]
    pieces: tuple[str, ...] | None = None
    source: str = "given"
    joined: bool = False  # whether the pieces make up the text
    request: Mapping[str, Any] = field(default_factory=dict)  # further fields of the Request


def is_one(explanations: Any) -> bool:
    """Whether this is one explanation; a list of anything but scores is several."""
    if not isinstance(explanations, list):
        return True
    return bool(explanations) and (_is_score(explanations[0]) or _is_pair(explanations[0]))


def _is_score(each: Any) -> bool:
    return is_number(each) or isinstance(each, (float, np.floating))


def _is_pair(each: Any) -> bool:
    return (
        isinstance(each, (tuple, list))
        and len(each) == 2
        and isinstance(each[0], str)
        and _is_score(each[1])
    )


def read_foreign(explanation: Any) -> ForeignScores:
    """The pieces and scores of one explanation that Attlas did not make."""
    if hasattr(explanation, "sequence_attributions"):
        return _of_inseq(explanation)
    if hasattr(explanation, "word_attributions") and hasattr(explanation, "raw_input_ids"):
        return _named(explanation.raw_input_ids, explanation.word_attributions, "captum")
    if (
        hasattr(explanation, "values")
        and hasattr(explanation, "data")
        and not callable(explanation.values)
    ):
        return _of_shap(explanation)
    if isinstance(explanation, tuple) and len(explanation) == 2 and not _is_pair(explanation):
        return _named(explanation[0], explanation[1], "given")
    if (
        isinstance(explanation, (list, tuple))
        and explanation
        and all(_is_pair(each) for each in explanation)
    ):
        return _named([each[0] for each in explanation], [each[1] for each in explanation], "given")
    return ForeignScores(_numbers(explanation))


def _named(pieces: Any, scores: Any, source: str) -> ForeignScores:
    names = tuple(str(piece) for piece in pieces)
    numbers = _numbers(scores)
    if len(names) != len(numbers):
        raise UsageError(
            f"{len(names)} tokens but {len(numbers)} scores: each token needs one score"
        )
    return ForeignScores(numbers, names, source)


def _numbers(scores: Any) -> NDArray[np.float64]:
    """Scores as an array: one for each piece, or one for each piece and class."""
    numbers = as_array(scores)
    if numbers.ndim not in (1, 2) or not len(numbers):
        raise UsageError(
            f"scores are one number for each token, not an array of shape {numbers.shape}"
        )
    if not np.isfinite(numbers).all():
        raise UsageError("scores must be finite numbers")
    return numbers


def _of_shap(explanation: Any) -> ForeignScores:
    """The Explanation of SHAP, of one text or of a batch of one text."""
    data, values = explanation.data, explanation.values
    batched = len(data) == 1 and not isinstance(data[0], (str, bytes))
    if batched:
        data, values = data[0], values[0]
    if not all(isinstance(piece, str) for piece in data):
        raise UsageError(
            f"this SHAP explanation is of {len(data)} texts: judge takes one (explanation[0])"
        )
    return replace(_named(data, values, "shap"), joined=True)


def _of_inseq(explanation: Any) -> ForeignScores:
    """The FeatureAttributionOutput of inseq, of one text and one generated token."""
    outputs: Sequence[Any] = explanation.sequence_attributions
    if len(outputs) != 1:
        raise UsageError(f"this inseq output is of {len(outputs)} texts: judge takes one")
    own = outputs[0]
    alone = own.source_attributions is None  # a model without an encoder
    read = own.target[: own.attr_pos_start] if alone else own.source
    scores = as_array(own.target_attributions if alone else own.source_attributions)
    if scores.ndim != 2:
        raise UsageError("this inseq output has a score for each feature: use output.aggregate()")
    if scores.shape[1] != 1:
        raise UsageError(
            f"this inseq output is of {scores.shape[1]} generated tokens: judge takes one"
        )
    pieces = [each.token for each in read]
    request = {} if alone else {"prefix": ""}
    return replace(_named(pieces, scores[: len(pieces), 0], "inseq"), joined=True, request=request)


def as_array(scores: Any) -> NDArray[np.float64]:
    """Numbers as an array, from whatever library."""
    array = scores
    for step in ("detach", "cpu", "numpy"):  # a tensor, of torch or another library
        array = getattr(array, step)() if hasattr(array, step) else array
    try:
        return np.asarray(array, dtype=np.float64)
    except (TypeError, ValueError):
        raise UsageError(f"judge takes {ACCEPTED}, not {type(scores).__name__}") from None


Place = tuple[str, Span]  # a segment, and where in it


def join_pieces(pieces: Sequence[str], specials: Collection[str]) -> str:
    """The text that the pieces make up, without special ones."""
    return "".join(_plain(each) for each in pieces if each not in specials).strip()


def put_on_tokens(
    tokens: Tokens,
    content: Sequence[int],
    pieces: Sequence[str],
    scores: NDArray[np.float64],
    specials: Collection[str],
) -> NDArray[np.float64]:
    """The scores of the content tokens, computed from scores of pieces of the same text.

    A token gets the sum of the scores of all pieces that share a character with it, so each token
    of a word gets the score of the word. It is an error if a piece does not follow the one before
    it in the text, or if no piece covers a token.
    """
    if tuple(pieces) == tokens.texts:  # the model's own tokens, whatever characters they stand for
        return scores[list(content)]
    places = list(_find(tokens, pieces, specials))
    return np.array([_score(tokens, position, places, scores) for position in content])


def _score(
    tokens: Tokens, position: int, places: Sequence[Place | None], scores: NDArray[np.float64]
) -> float:
    span, segment = tokens.spans()[position], tokens.segments[position]
    text = tokens.sources.get(segment, "")
    if span is None or not text[slice(*span)].strip():
        return 0.0
    own = [
        score
        for place, score in zip(places, scores.tolist(), strict=True)
        if place and place[0] == segment and overlap(place[1], span)
    ]
    if not own:
        word = text[slice(*span)]
        raise UsageError(f"token {position}, {word!r}, has no score: no piece covers it")
    return float(sum(own))


def _find(
    tokens: Tokens, pieces: Sequence[str], specials: Collection[str]
) -> Iterator[Place | None]:
    """The place of each piece in the text, in order; None for pieces without text."""
    segments = [name for name in dict.fromkeys(tokens.segments) if tokens.sources.get(name)]
    number, start = 0, 0
    for index, piece in enumerate(pieces):
        bare = _plain(piece).strip()
        if piece in specials or not bare:
            yield None
            continue
        while True:
            if number == len(segments):
                raise UsageError(f"token {index}, {piece!r}, comes after the end of the text")
            text = tokens.sources[segments[number]]
            start += len(text[start:]) - len(text[start:].lstrip())
            if start < len(text):
                break
            number, start = number + 1, 0
        if text[start : start + len(bare)].casefold() != bare.casefold():
            raise UsageError(
                f"token {index}, {piece!r}, does not match the text, which continues with "
                f"{text[start : start + SHOWN]!r}"
            )
        yield segments[number], (start, start + len(bare))
        start += len(bare)


def _plain(piece: str) -> str:
    """A piece without the marks that tokenizers add to its text."""
    bare = piece.translate(dict.fromkeys(map(ord, SPACES), " "))
    bare = bare.removeprefix(INSIDE) if len(bare) > len(INSIDE) else bare
    return bare.replace(AFTER, " ") if bare != AFTER else bare
