"""Generated text: the tokens before a written token, and scores by word or sentence."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from attlas.errors import UsageError
from attlas.results.support.frames import Labels, labels
from attlas.results.support.words import Unit
from attlas.shapes import OutputScores
from attlas.tokens import Tokens

LONGEST = 60  # characters of what was written, in a line


def check_matrix(tokens: Tokens, scores: OutputScores, outputs: Sequence[int]) -> None:
    """Refuse scores that are not a matrix of outputs by tokens, or that look ahead."""
    count = len(tokens)
    if scores.shape != (len(outputs), count):
        raise UsageError(
            f"{len(outputs)} outputs of {count} tokens but scores of shape {scores.shape}"
        )
    if list(outputs) != sorted({each for each in outputs if 0 <= each < count}):
        raise UsageError(
            f"outputs are places among {count} tokens in rising order, not {list(outputs)}"
        )
    if scores.dtype.kind != "f" or not np.isfinite(scores).all():
        raise UsageError("scores must be finite floating-point numbers")
    for row, place in enumerate(outputs):
        if scores[row, place:].any():
            raise UsageError(f"row {row} has scores at or after token {place}, which it explains")


def written_text(tokens: Tokens, positions: Sequence[int]) -> str:
    """The text from the first to the last of these tokens; the tokens if they have no offsets."""
    placed = [(tokens.segments[i], span) for i in positions if (span := tokens.offsets[i])]
    if not placed:
        return " ".join(tokens[i] for i in positions)
    segment, (start, _) = placed[0]
    end = max(span[1] for name, span in placed if name == segment)
    return tokens.sources.get(segment, "")[start:end].strip()


def shortened(text: str) -> str:
    """What was written, cut to one line."""
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 1]}…"


def tokens_before(tokens: Tokens, stop: int) -> Tokens:
    """The tokens before position `stop`; source texts are cut where their last token ends."""
    kept = tokens.select(range(stop))
    ends = _ends(kept)
    cut = {name: text[: ends.get(name, 0)] for name, text in tokens.sources.items()}
    return replace(kept, sources={name: text for name, text in cut.items() if text})


def _ends(tokens: Tokens) -> dict[str, int]:
    """Where in its text the last token of each segment ends."""
    ends: dict[str, int] = {}
    for segment, span in zip(tokens.segments, tokens.offsets, strict=True):
        if span:
            ends[segment] = max(span[1], ends.get(segment, 0))
    return ends


def unit_rows(outputs: Sequence[int], units: Sequence[Unit]) -> Mapping[int, list[int]]:
    """The rows that explain the tokens of each unit, for units with at least one."""
    rows = {place: row for row, place in enumerate(outputs)}
    held = {i: [rows[p] for p in unit.positions if p in rows] for i, unit in enumerate(units)}
    return {i: found for i, found in held.items() if found}


def unit_labels(units: Sequence[Unit], name: str) -> Labels:
    """The labels of a table over units: the position of the first token, and the text."""
    return labels([(unit.positions[0], unit.text) for unit in units], [name, "text"])


def unit_scores(
    scores: OutputScores, outputs: Sequence[int], units: Sequence[Unit]
) -> NDArray[np.float64]:
    """The matrix over units: columns are sums over tokens, rows are means over tokens."""
    summed = np.zeros((len(scores), len(units)))
    for column, unit in enumerate(units):
        summed[:, column] = scores[:, list(unit.positions)].sum(axis=1, dtype=np.float64)
    held = unit_rows(outputs, units).values()
    found = [summed[rows].mean(axis=0) for rows in held]
    return np.array(found).reshape(len(found), len(units))
