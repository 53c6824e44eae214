"""Explanations of captum, SHAP, inseq and ferret as results of Attlas, to be seen and judged."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from attlas.errors import UsageError
from attlas.results import Explanation, Generation, Origin, TargetRecord
from attlas.tokens import Tokens
from attlas.version import __version__
from attlas.views.elsewhere import (
    ForeignScores,
    as_array,
    is_one,
    place_pieces,
    read_foreign,
    record_facts,
)

UNNAMED = "a model elsewhere"


def from_elsewhere(
    explanation: Any,
    *,
    text: str | None = None,
    target: str | int | None = None,
    model: str = UNNAMED,
) -> Any:
    """Read what another library returned, so that it is shown, drawn and judged like our own.

    One explanation gives an `Explanation`, an output of inseq a `Generation`; a list of them, and
    what SHAP or inseq returned for several texts, give a list. The libraries are not imported.

    Args:
        explanation: A record of captum, an explanation of SHAP, inseq or ferret, a list of
            (token, score), or a pair (tokens, scores).
        text: The text that was explained; otherwise it is put together from the tokens.
        target: What was explained: the name or, for SHAP, also the number of one of its outputs;
            by default the output that is largest.
        model: The name of the model, for headings.

    Example:
        >>> attlas.from_elsewhere((["a", "great", "film"], [0.1, 0.8, 0.2])).plot()
    """
    if hasattr(explanation, "sequence_attributions"):
        made = [_generation(each, explanation) for each in explanation.sequence_attributions]
        return made[0] if len(made) == 1 else made
    parts = _several(explanation)
    if parts is not None:
        return [from_elsewhere(e, text=text, target=target, model=model) for e in parts]
    foreign = read_foreign(explanation)
    if foreign.pieces is None:
        raise UsageError("numbers alone cannot be shown: give (token, score) or (tokens, scores)")
    scores, name, quantity, value = _chosen(foreign, explanation, target)
    known = record_facts(explanation) if foreign.source == "captum" else {}
    own = text if text is not None else getattr(explanation, "text", None)
    tokens = _tokens(foreign.pieces, "text", own)
    method = str(getattr(explanation, "explainer", foreign.source))
    return Explanation(
        tokens,
        scores.astype(np.float32),
        TargetRecord(str(target) if isinstance(target, str) else name, quantity, value),
        _origin(method, model, bool((scores < 0).any()), {"text": tokens.sources["text"]}),
        tuple(known.get("prediction", ())),
        tuple(known.get("notes", ())),
        true_label=known.get("true_label"),
    )


def _several(explanation: Any) -> list[Any] | None:
    """The explanations that this holds, if it is a list of them or a batch of SHAP's."""
    if isinstance(explanation, list):
        return None if is_one(explanation) else explanation
    data = getattr(explanation, "data", None)
    if callable(getattr(explanation, "values", None)) or not isinstance(
        data, Sequence | np.ndarray
    ):
        return None
    batch = len(data) > 0 and not any(isinstance(each, str | bytes) for each in data)
    return [explanation[number] for number in range(len(data))] if batch else None


def _chosen(
    foreign: ForeignScores, explanation: Any, target: str | int | None
) -> tuple[NDArray[np.float64], str, str, float]:
    """The scores of one target, its name, what it is, and its value."""
    scores = foreign.scores
    if foreign.source != "shap":
        named = {"captum": "attr_class", "ferret": "target"}.get(foreign.source, "")
        name = str(getattr(explanation, named, "the output") if target is None else target)
        if scores.ndim != 1:
            raise UsageError(f"{scores.shape[1]} scores for each token: choose those of one target")
        return scores, name, "sum of scores", float(scores.sum())
    base = np.atleast_1d(as_array(getattr(explanation, "base_values", 0.0)))
    columns = scores if scores.ndim == 2 else scores[:, None]
    totals = columns.sum(axis=0) + base
    given = getattr(explanation, "output_names", None)
    alone = isinstance(given, str) or given is None
    names = [str(given or "the output")] if alone else [str(each) for each in given or ()]
    if len(names) != len(totals):
        names = [str(number) for number in range(len(totals))]
    place = _column(names, totals, target)
    return columns[:, place], str(names[place]), "output", float(totals[place])


def _column(names: Sequence[str], totals: NDArray[np.float64], target: str | int | None) -> int:
    if target is None or len(totals) == 1:
        return int(np.argmax(totals))
    place = names.index(target) if target in names else target
    if not isinstance(place, int) or not 0 <= place < len(totals):
        raise UsageError(f"no output {target!r}: there are {', '.join(map(str, names))}")
    return place


def _tokens(pieces: Sequence[str], segment: str, text: str | None = None) -> Tokens:
    whole, places = place_pieces(pieces, text)
    special = tuple(place is None for place in places)
    segments = (segment,) * len(pieces)
    return Tokens(tuple(pieces), tuple(places), special, segments, {segment: whole})


def _origin(method: str, model: str, signed: bool, asked: Mapping[str, Any]) -> Origin:
    versions, reading = {"attlas": __version__}, "Scores from elsewhere."
    told = {"reading": reading, "asked": asked, "versions": versions, "verb": "from_elsewhere"}
    return Origin(model, "", method, signed, **told)  # type: ignore[arg-type]


def _generation(own: Any, output: Any) -> Generation:
    """One sequence of inseq: a row for each token that was written and explained."""
    written = [each.token for each in own.target]
    start = int(own.attr_pos_start)
    stop = len(written) if own.attr_pos_end is None else int(own.attr_pos_end)
    alone = own.source_attributions is None
    read = [] if alone else [each.token for each in own.source]
    scores = np.zeros((stop - start, len(read) + len(written)), dtype=np.float32)
    for found, place, count in (
        (own.source_attributions, 0, len(read)),
        (own.target_attributions, len(read), len(written)),
    ):
        if found is not None:
            scores[:, place : place + count] = _by_output(found, count, stop - start)
    outputs = tuple(len(read) + place for place in range(start, stop))
    scores[np.arange(scores.shape[1]) >= np.array(outputs)[:, None]] = 0.0
    tokens = _tokens(written[:start], "text").followed_by(_tokens(written[start:], "output"))
    if not alone:
        tokens = _tokens(read, "source").followed_by(_tokens(written, "output"))
    info = getattr(output, "info", None) or {}
    method = str(info.get("attribution_method", "inseq"))
    targets = tuple(
        TargetRecord(written[place], "sum of scores", float(scores[row].sum(dtype=np.float64)))
        for row, place in enumerate(range(start, stop))
    )
    model = str(info.get("model_name", UNNAMED))
    signed = bool((scores < 0).any())
    return Generation(tokens, scores, outputs, targets, _origin(method, model, signed, {}))


def _by_output(found: Any, count: int, outputs: int) -> NDArray[np.float64]:
    """Scores as inseq holds them, input × output, turned around; unknown ones are zero."""
    scores = as_array(found)
    if scores.ndim != 2:
        raise UsageError("this inseq output has a score for each feature: use output.aggregate()")
    whole = np.zeros((count, outputs))
    rows = min(count, scores.shape[0])
    whole[:rows] = np.nan_to_num(scores[:rows, :outputs])
    return whole.T
