"""Explanations from other libraries, or plain lists of scores, read into one form.

captum, SHAP, inseq and ferret are not imported: their objects are recognised by their attributes.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import NDArray

from attlas.errors import UsageError
from attlas.views.kinds.explanation import fragment, render

SPACES = "Ġ▁Ċ"  # what tokenizers write for a space, or the end of a line
INSIDE = "##"  # what they write before a piece that continues a word
AFTER = "</w>"  # and after a piece that ends one
ACCEPTED = (
    "an Explanation, a list of numbers, a list of (token, score), a pair (tokens, scores), or an "
    "explanation of SHAP, inseq, captum or ferret"
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
    whole = isinstance(each, Integral) and not isinstance(each, bool)
    return whole or isinstance(each, (float, np.floating))


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
    if all(hasattr(explanation, name) for name in ("tokens", "scores", "explainer", "text")):
        return _named(explanation.tokens, explanation.scores, "ferret")
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


def plain_piece(piece: str) -> str:
    """A piece without the marks that tokenizers add to its text."""
    bare = piece.translate(dict.fromkeys(map(ord, SPACES), " "))
    bare = bare.removeprefix(INSIDE) if len(bare) > len(INSIDE) else bare
    return bare.replace(AFTER, " ") if bare != AFTER else bare


_SPECIAL = re.compile(r"\[[A-Z]+\]|<[^<>\s]*>|<\|[^|]*\|>")  # as tokenizers write them


def place_pieces(
    pieces: Sequence[str], text: str | None = None
) -> tuple[str, list[tuple[int, int] | None]]:
    """The text that the pieces make up, and the place of each in it; None for special ones.

    A given text is used if every piece is found in it, in order. Pieces that hold no spaces and
    no marks for them are words, or continue one where they say so.
    """
    bare = [None if _SPECIAL.fullmatch(each.strip()) else plain_piece(each) for each in pieces]
    if text is not None and (found := _find_all(bare, text)) is not None:
        return text, found
    spaced = any(each is not None and each != each.strip() for each in bare)
    made = ""
    places: list[tuple[int, int] | None] = []
    for piece, plain in zip(pieces, bare, strict=True):
        if plain is None:
            places.append(None)
            continue
        made += " " if made and not spaced and not piece.startswith(INSIDE) else ""
        start = len(made)
        made += plain
        places.append((start, len(made)))
    return made, places


def _find_all(bare: Sequence[str | None], text: str) -> list[tuple[int, int] | None] | None:
    places: list[tuple[int, int] | None] = []
    end = 0
    for plain in bare:
        word = (plain or "").strip()
        if not word:
            places.append(None)
            continue
        start = text.casefold().find(word.casefold(), end)
        if start < 0 or text[end:start].strip():
            return None
        end = start + len(word)
        places.append((start, end))
    return places


@dataclass(frozen=True, eq=False)
class ShownRecords:
    """Explanations of another library, as a notebook and a terminal show them."""

    payloads: tuple[Mapping[str, Any], ...]

    def _repr_html_(self) -> str:
        return "".join(fragment(payload) for payload in self.payloads)

    def __rich_console__(self, console: Any, options: Any) -> Iterator[Any]:
        for payload in self.payloads:
            yield render(payload)


def visualize_text(datarecords: Iterable[Any], legend: bool = True) -> ShownRecords:
    """Show captum's records of texts as Attlas shows an explanation.

    It takes what captum's function of this name takes: objects with `word_attributions`,
    `raw_input_ids`, `pred_class`, `pred_prob`, `true_class`, `attr_class`, `attr_score` and
    `convergence_score`. Labels and tokens are shown as text, whatever they hold.
    """
    return ShownRecords(tuple(_record_payload(each, legend) for each in datarecords))


def record_facts(record: Any) -> dict[str, Any]:
    """What captum's record says beside its scores."""
    score, delta = getattr(record, "attr_score", None), getattr(record, "convergence_score", None)
    notes = [f"Attribution score {float(score):.3g}."] if score is not None else []
    notes += [f"Convergence score {float(delta):.3g}."] if delta is not None else []
    likely = {"label": str(record.pred_class), "probability": float(record.pred_prob)}
    return {
        "target": str(record.attr_class),
        "prediction": [likely],
        "true_label": str(record.true_class),
        "notes": notes,
    }


def _record_payload(record: Any, legend: bool) -> dict[str, Any]:
    foreign, facts = read_foreign(record), record_facts(record)
    pieces = foreign.pieces or ()
    text, places = place_pieces(pieces)
    spans = [place or (None, None) for place in places]
    rows = [
        {
            "text": piece,
            "label": text[slice(*place)].strip() or piece if place else piece,
            "score": float(score),
            "special": place is None,
            "segment": "text",
            "start": span[0],
            "end": span[1],
        }
        for piece, score, place, span in zip(pieces, foreign.scores, places, spans, strict=True)
    ]
    name = facts["target"]
    reading = f"A word in orange speaks for {name}, one in blue against it." if legend else ""
    total = {"name": name, "quantity": "sum of scores", "value": float(foreign.scores.sum())}
    return {
        "kind": "explanation",
        "version": 1,
        "headline": f"What speaks for {name}?",
        "model": "a model elsewhere",
        "task": "",
        "method": "captum",
        "signed": True,
        "paper": "",
        "reading": reading,
        "options": {},
        "versions": {},
        "target": {**total, "contrast": None},
        "prediction": facts["prediction"],
        "true_label": facts["true_label"],
        "tokens": rows,
        "words": None,
        "sources": {"text": text},
        "pictures": [],
        "sinks": [],
        "notes": facts["notes"],
        "code": "",
        "maps": None,
    }
