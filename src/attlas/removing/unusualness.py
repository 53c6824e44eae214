"""Unusualness: how strange a text without some of its tokens is to a model."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from attlas.errors import UsageError
from attlas.models.asking.filling import NEAR, can_fill, split_by_length
from attlas.models.asking.memory import in_fitting_batches, plain_tokens, rows_of
from attlas.models.asking.question import Question
from attlas.models.asking.reading import readout_states
from attlas.models.encoding.inputs import group_by_shape, stack
from attlas.removing.operators import delete
from attlas.removing.pooling import Pool, Text
from attlas.removing.removal import check_removal, is_tied, removable, without
from attlas.shapes import SomeTextValues, StateTable, StateVector, TextValues, Ways

VERSIONS = 4
STRANGE = 0.7  # if the index is surely larger, texts without tokens are strange to the model
LEAST_TEXTS = 3  # so that two others are left, which have a mean and a spread
LEAST_SPREAD = 1e-3  # of the size of the vectors; a smaller spread is rounding
SAME = 0.02  # distances that differ by less are the same; those of whole texts are about 1
CUT, WHOLE = "the same texts cut short", "other whole texts"


@dataclass(frozen=True, eq=False)
class Unusualness:
    """For each text, how often a version without some of its tokens is stranger than usual.

    The values are shares from 0 to 1, NaN for a text of fewer than two content tokens. `usual` says
    what the versions were compared with: CUT, or WHOLE if tokens cannot be deleted.
    """

    values: TextValues
    usual: str


def unusualness(
    questions: Sequence[Question], how: str, seed: int = 0, versions: int = VERSIONS
) -> Unusualness:
    """How often a text changed by a removal is stranger to the model than the same text cut short.

    Each version lacks a random number of content tokens, from one to all but one, drawn at random.
    Beside it stands the same text cut so that as many are left, all in a row. What is compared is
    the state that the prediction is read from: how far it is from those of all other whole texts,
    and how unusual it is for a whole text to be so far, or so near. 0.5 means that the removal
    makes a text no stranger than cutting it does, 1 that it always does.

    It does not show that the answers are wrong where it is high, nor that they are right where it
    is low: a strange text may end in a usual state, and the states of other layers are not read.
    """
    texts = _texts(questions)
    check_removal(texts[0].subject, how)
    counts = [len(removable(text, 0)) for text in texts]
    drawn = [
        _draw(count, versions, np.random.default_rng([seed, number]))
        for number, count in enumerate(counts)
    ]
    nothing = [np.zeros((1, count), dtype=bool) for count in counts]
    whole = np.concatenate(_states(texts, nothing, "mask"))
    changed = _states(texts, [sets for sets, _ in drawn], how)
    if is_tied(texts[0].subject):
        return Unusualness(_shares(whole, changed, None), WHOLE)
    cut = _states(texts, [runs for _, runs in drawn], "delete")
    return Unusualness(_shares(whole, changed, cut), CUT)


def _texts(questions: Sequence[Question]) -> list[Question]:
    """A question for each text, in order."""
    found = {
        number: question.rows([row])
        for question in questions
        for row, number in enumerate(question.order)
    }
    if len(found) < LEAST_TEXTS:
        raise UsageError(f"unusualness needs {LEAST_TEXTS} texts or more, not {len(found)}")
    return [found[number] for number in sorted(found)]


def _draw(count: int, versions: int, random: np.random.Generator) -> tuple[Ways, Ways]:
    """Random sets of tokens to remove, and sets of the same sizes that leave tokens in a row."""
    if count < 2:
        return np.zeros((0, count), dtype=bool), np.zeros((0, count), dtype=bool)
    gone = random.integers(1, count, size=versions)
    sets = np.stack([random.permutation(count) < size for size in gone])
    first = random.integers(0, gone + 1)[:, None]
    places = np.arange(count)
    kept = (places >= first) & (places < first + count - gone[:, None])
    return sets, ~kept


def _shares(
    whole: StateTable, changed: Sequence[StateTable], cut: Sequence[StateTable] | None
) -> TextValues:
    """For each text, how often a changed version is stranger than a cut one or another text."""
    values = np.full(len(whole), np.nan)
    left = [np.delete(whole, number, axis=0) for number in range(len(whole))]
    own = np.concatenate([distances(left[n], whole[[n]]) for n in range(len(whole))])
    for number, states in enumerate(changed):
        if not len(states):
            continue
        usual = np.delete(own, number)
        found = strangeness(distances(left[number], states), usual)
        if cut is None:
            values[number] = share_above(found[:, None], strangeness(usual, usual)[None])
        else:
            beside = strangeness(distances(left[number], cut[number]), usual)
            values[number] = share_above(found, beside)
    return values


def _states(
    texts: Sequence[Question], ways: Sequence[NDArray[np.bool_]], how: str
) -> list[StateTable]:
    """The state of each text without each set of its tokens, `[way, feature]`."""
    if texts[0].subject.device.type in NEAR and all(map(can_fill, texts)):
        return _filled_states(texts, ways, how)
    rows = [text for text, own in zip(texts, ways, strict=True) for _ in own]
    hidden = [_over_tokens(text, own) for text, own in zip(texts, ways, strict=True)]
    marks = [way[None] for own in hidden for way in own]
    if how == "delete":  # at once: texts share a batch if equally many tokens are left of them
        rows = [
            row.about(delete(row, row.inputs, way)) for row, way in zip(rows, marks, strict=True)
        ]
    found: dict[int, StateVector] = {}
    for group in group_by_shape([row.inputs for row in rows], len(rows) or 1):
        length = rows[group[0]].inputs.streams()[-1].stop
        most = rows_of(texts[0].subject.device, length)
        for start in range(0, len(group), most):
            batch = group[start : start + most]
            states = _read([rows[n] for n in batch], [marks[n] for n in batch], how)
            found |= zip(batch, states, strict=True)
    ends = np.cumsum([len(own) for own in ways])[:-1]
    return np.split(np.stack([found[number] for number in range(len(rows))]), ends)


def _filled_states(
    texts: Sequence[Question], ways: Sequence[NDArray[np.bool_]], how: str
) -> list[StateTable]:
    """Like `_states`, with texts of several lengths in one batch."""
    pool = Pool([Text(text, 0, removable(text, 0)) for text in texts])
    counts = [len(own) for own in ways]
    rows = np.repeat(np.arange(len(texts)), counts)
    hidden = np.concatenate([pool.spread(number, own) for number, own in enumerate(ways)])
    lengths = pool.lengths[rows, 0] - (hidden.sum(axis=1) if how == "delete" else 0)
    device = texts[0].subject.device
    found: StateTable = np.empty((len(rows), 0))
    for batch in split_by_length(lengths, NEAR[device.type], plain_tokens(device)):
        given = rows[batch], torch.from_numpy(hidden[batch]), int(lengths[batch].max())
        joined = texts[0].asking([texts[row].targets[0] for row in rows[batch]])
        if how == "delete":
            states = readout_states(joined.about(pool.packed_without(*given)))
        else:
            with without(joined, *pool.packed(*given), how) as inputs:
                states = readout_states(joined.about(inputs))
        if not found.size:
            found = np.empty((len(rows), states.shape[1]))
        found[batch] = states.double().cpu().numpy()
    return np.split(found, np.cumsum(counts)[:-1])


def _over_tokens(text: Question, ways: Ways) -> Tensor:
    """Sets of content tokens as marks on all tokens, `[way, token]`."""
    hidden = torch.zeros(len(ways), len(text.inputs.tokens[0]), dtype=torch.bool)
    hidden[:, removable(text, 0)] = torch.from_numpy(ways)
    return hidden


def _read(rows: Sequence[Question], marks: Sequence[Tensor], how: str) -> StateTable:
    """The states of texts of one shape without their marked tokens, halved if memory is short."""

    def work(numbers: Sequence[int]) -> Tensor:
        own = [rows[number] for number in numbers]
        targets = [row.targets[0] for row in own]
        joined = replace(own[0].asking(targets), inputs=stack([row.inputs for row in own]))
        if how == "delete":
            return readout_states(joined)
        hidden = torch.cat([marks[number] for number in numbers])
        with without(joined, joined.inputs, hidden, how) as inputs:
            return readout_states(joined.about(inputs))

    too_large = f"{rows[0].subject.name} cannot take one text of {marks[0].shape[1]} tokens"
    batches = in_fitting_batches(range(len(rows)), work, too_large, "changed texts")
    found = torch.cat(list(batches))
    states: StateTable = found.double().cpu().numpy()
    return states


def distances(sample: StateTable, others: StateTable) -> SomeTextValues:
    """Mahalanobis' distance of each other vector to the mean of a sample, by a shrunk covariance.

    The covariance is shrunk towards a multiple of the identity by as much as Ledoit and Wolf (2004)
    found to be best, so there may be fewer vectors than features. The distance is divided by the
    root of the number of features: for vectors of the sample's own kind it is about 1.
    """
    count, features = sample.shape
    if count < 2:
        raise UsageError(f"a spread needs at least two vectors, not {count}")
    mean = sample.mean(axis=0)
    values, rows = np.linalg.eigh((sample - mean) @ (sample - mean).T / count)
    values = values.clip(0)
    share, level = _shrinkage(sample - mean, values)
    least = LEAST_SPREAD**2 * float((sample**2).sum()) / sample.size
    # Each direction of the sample that has a variance, and all others together.
    own = values > 1e-12 * max(float(values.max()), np.finfo(float).tiny)
    axes = (sample - mean).T @ (rows[:, own] / np.sqrt(count * values[own]))
    parts = (others - mean) @ axes
    rest = (((others - mean) ** 2).sum(axis=1) - (parts**2).sum(axis=1)).clip(0)
    spread = np.maximum((1 - share) * values[own] + share * level, least)
    squares = (parts**2 / spread).sum(axis=1) + _divided(rest, max(share * level, least))
    found: SomeTextValues = np.sqrt(squares / features)
    return found


def _shrinkage(centred: NDArray[np.float64], values: NDArray[np.float64]) -> tuple[float, float]:
    """The share of the identity in the best covariance, and its multiple: the mean variance."""
    count, features = centred.shape
    level = float(values.sum()) / features
    squared = float((values**2).sum())
    apart = squared - features * level**2  # of the covariance from the multiple of the identity
    noise = (float(((centred**2).sum(axis=1) ** 2).sum()) / count - squared) / count
    return (min(1.0, noise / apart) if apart > 0 else 1.0), level


def _divided(squares: NDArray[np.float64], spread: float) -> NDArray[np.float64]:
    """What is outside of the sample's directions; only vectors of zeros have no spread at all."""
    unknown = np.where(squares > 0, np.inf, 0.0)
    return squares / spread if spread > 0 else unknown


def strangeness(found: SomeTextValues, usual: SomeTextValues) -> SomeTextValues:
    """How far distances are from a usual one, the median, above or below, as a log ratio.

    Few vectors of many features are near the mean of their kind: one that is there is strange too.
    """
    middle = float(np.median(usual))
    far: SomeTextValues = np.abs(np.log((found + SAME) / (middle + SAME)))
    return far


def share_above(one: NDArray[np.float64], other: NDArray[np.float64]) -> float:
    """The share of pairs in which the first is larger; equal ones count half."""
    tied = np.isclose(one, other, rtol=0, atol=SAME)
    return float(np.where(tied, 0.5, one > other).mean())
