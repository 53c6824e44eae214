"""Scores from other libraries or plain lists, moved to the tokens that a model reads."""

from collections.abc import Collection, Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from attlas.errors import UsageError
from attlas.tokens import Span, Tokens, overlap
from attlas.views.elsewhere import plain_piece

SHOWN = 20  # characters of a text in an error
Place = tuple[str, Span]  # a segment, and where in it


def join_pieces(pieces: Sequence[str], specials: Collection[str]) -> str:
    """The text that the pieces make up, without special ones."""
    return "".join(plain_piece(each) for each in pieces if each not in specials).strip()


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
        bare = plain_piece(piece).strip()
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
