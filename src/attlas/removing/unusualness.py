"""Unusualness: how strange a text without some of its tokens is to a model."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from attlas.errors import UsageError
from attlas.mathematics.distances import distances, share_above, strangeness
from attlas.models.asking.memory import in_fitting_batches, rows_of
from attlas.models.asking.question import Question
from attlas.models.encoding.inputs import group_by_shape, stack
from attlas.models.states.readout_states import readout_states
from attlas.removing.operators import delete
from attlas.removing.removal import check_removal, is_tied, removable, without
from attlas.shapes import StateTable, StateVector, TextValues, Ways

VERSIONS = 4
LEAST_TEXTS = 3  # so that two others are left, which have a mean and a spread
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


def _over_tokens(text: Question, ways: Ways) -> Tensor:
    """Sets of content tokens as marks on all tokens, `[way, token]`."""
    hidden = torch.zeros(len(ways), len(text.inputs.tokens[0]), dtype=torch.bool)
    hidden[:, removable(text, 0)] = torch.from_numpy(ways)
    return hidden


def _read(rows: Sequence[Question], marks: Sequence[Tensor], how: str) -> StateTable:
    """The states of texts of one shape without their marked tokens, halved if memory is short."""

    def work(numbers: Sequence[int]) -> Tensor:
        own = [rows[number] for number in numbers]
        joined = replace(
            own[0],
            inputs=stack([row.inputs for row in own]),
            targets=tuple(row.targets[0] for row in own),
        )
        if how == "delete":
            return readout_states(joined)
        hidden = torch.cat([marks[number] for number in numbers])
        with without(joined, joined.inputs, hidden, how) as inputs:
            return readout_states(joined.about(inputs))

    too_large = f"{rows[0].subject.name} cannot take one text of {marks[0].shape[1]} tokens"
    found = torch.cat(list(in_fitting_batches(range(len(rows)), work, too_large)))
    states: StateTable = found.double().cpu().numpy()
    return states
