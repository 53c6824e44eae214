"""Erasures: a model's answers to texts without some of their tokens, each asked for once."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from attlas.errors import UsageError
from attlas.models.asking.filling import NEAR, can_fill
from attlas.models.asking.memory import in_fitting_batches, rows_of
from attlas.models.asking.question import Question
from attlas.models.facts.evaluation_mode import evaluation_mode
from attlas.removing.pooling import Pool, Rows, find_texts
from attlas.removing.removal import check_removal, without
from attlas.shapes import WayMarks, Ways, WayScores

__all__ = ["Erasures", "Outcomes", "Ways"]
MOST_CELLS = 2**28  # entries of the table of hidden tokens that is built at once
_Keys = NDArray[Any]  # strings of bytes, all of one length


@dataclass(frozen=True, eq=False)
class Outcomes:
    """The model's answers to one text with different sets of tokens removed."""

    log_probability: WayScores  # of the target
    chosen: WayMarks  # whether the target is still the model's first choice

    @property
    def probability(self) -> WayScores:
        """The probability of the target in each way."""
        probability: WayScores = np.exp(self.log_probability)
        return probability


class Erasures:
    """The answers of a model to texts without some of their tokens; each is asked for once.

    `how` is one of `REMOVALS`. A way is a set of a text's content tokens: True means removed.
    Texts are numbered as in the `order` of the questions.
    """

    def __init__(self, questions: Sequence[Question], how: str) -> None:
        self.how = how
        self._texts = find_texts(questions)
        for subject in {question.subject for question in questions}:
            check_removal(subject, how)
        self._answers = {number: AnswerTable() for number in self._texts}
        self._pools: list[Pool] = []
        self._place: dict[int, tuple[int, int]] = {}  # for each text: its pool and its row there
        self._pool()

    def _pool(self) -> None:
        forms: dict[Any, list[int]] = {}
        for number, text in self._texts.items():
            forms.setdefault((id(text.question.subject), text.form), []).append(number)
        for numbers in forms.values():
            self._place |= {number: (len(self._pools), row) for row, number in enumerate(numbers)}
            self._pools.append(Pool([self._texts[number] for number in numbers]))

    def content(self, text: int) -> list[int]:
        """The positions of the tokens of a text that may be removed."""
        return self._texts[text].content

    def whole(self, text: int) -> Outcomes:
        """The answer to the whole text, with nothing removed."""
        return self.of(text, np.zeros((1, len(self.content(text))), dtype=bool))

    def of(self, text: int, ways: Ways) -> Outcomes:
        """The answers to a text without these tokens; the model is asked for those not known."""
        self._check(text, ways)
        known = self._answers[text].of(ways)
        if known is None:
            self.ask({text: ways})
            known = self._answers[text].of(ways)
        assert known is not None
        return Outcomes(*known)

    def forget(self, text: int) -> None:
        """Drop the answers to one text."""
        self._answers[text] = AnswerTable()

    def ask(self, by_text: Mapping[int, Ways]) -> None:
        """Ask the model for the answers that are not known, for all texts together."""
        unknown = {}
        for text, ways in by_text.items():
            self._check(text, ways)
            new = self._answers[text].unknown(ways)
            if len(new):
                unknown[text] = new
        for number, pool in enumerate(self._pools):
            here = {text: ways for text, ways in unknown.items() if self._place[text][0] == number}
            for portion in _portions(here, pool.streams[-1].stop):
                self._ask_pool(pool, portion)

    def _check(self, text: int, ways: Ways) -> None:
        if text not in self._texts:
            raise UsageError(f"unknown text {text}: there are {len(self._texts)}")
        if ways.shape[1] != len(self.content(text)):
            raise UsageError(
                f"a way of text {text} is over its {len(self.content(text))} content tokens, "
                f"not {ways.shape[1]}"
            )

    def _ask_pool(self, pool: Pool, wanted: Mapping[int, Ways]) -> None:
        own = {text: self._place[text][1] for text in wanted}
        rows = np.repeat(list(own.values()), [len(ways) for ways in wanted.values()])
        hidden = np.concatenate([pool.spread(own[text], ways) for text, ways in wanted.items()])
        found = np.empty((2, len(rows)))
        with torch.no_grad(), evaluation_mode(pool.question.subject.model):
            for batch in self._batches(pool, rows, hidden):
                found[:, batch] = self._run(pool, rows[batch], torch.from_numpy(hidden[batch]))
        ends = np.cumsum([len(ways) for ways in wanted.values()])[:-1]
        answers = np.split(found, ends, axis=1)
        for (text, ways), both in zip(wanted.items(), answers, strict=True):
            self._answers[text].add(ways, both[0], both[1] > 0)

    def _batches(self, pool: Pool, rows: Rows, hidden: NDArray[np.bool_]) -> Iterator[Rows]:
        """Which rows share a batch: those with the same length when they are run."""
        lengths = pool.lengths[rows]
        if self.how == "delete":
            for number, stream in enumerate(pool.streams):
                lengths[:, number] -= hidden[:, stream.start : stream.stop].sum(axis=1)
        if self._packs(pool):
            step = NEAR[pool.question.subject.device.type]
            lengths = np.minimum(-(-lengths // step) * step, pool.lengths.max())
        kinds, kind = np.unique(lengths, axis=0, return_inverse=True)
        order = np.argsort(kind.ravel(), kind="stable")
        groups = np.split(order, np.cumsum(np.bincount(kind.ravel()))[:-1])
        for group, length in zip(groups, kinds.sum(axis=1).tolist(), strict=True):
            most = rows_of(pool.question.subject.device, max(length, 1))
            yield from (group[start : start + most] for start in range(0, len(group), most))

    def _run(self, pool: Pool, rows: Rows, hidden: Tensor) -> NDArray[np.float64]:
        """The answers to one batch, `[2, row]`; it is halved if memory is short."""

        def work(numbers: Sequence[int]) -> Tensor:
            index = np.asarray(numbers, dtype=np.intp)
            return self._answer(pool, rows[index], hidden[index])

        too_large = f"{pool.question.subject.name} cannot take one text of {hidden.shape[1]} tokens"
        answers = list(in_fitting_batches(range(len(rows)), work, too_large))
        return torch.cat(answers, dim=1).double().cpu().numpy()

    def _packs(self, pool: Pool) -> bool:
        """Whether rows of similar lengths share a batch."""
        return pool.question.subject.device.type in NEAR and can_fill(pool.question)

    def _answer(self, pool: Pool, rows: Rows, hidden: Tensor) -> Tensor:
        if self._packs(pool):
            return self._answer_packed(pool, rows, hidden)
        subject = pool.question.subject
        make = pool.filled_batch if self.how == "delete" else pool.batch
        first = pool.first_place if subject.predicts_next else None
        with without(pool.question, *make(rows, hidden), self.how) as inputs:
            return pool.read(subject.run(inputs.arguments, first), rows)

    def _answer_packed(self, pool: Pool, rows: Rows, hidden: Tensor) -> Tensor:
        lengths, subject = pool.lengths[rows][:, 0], pool.question.subject
        if self.how == "delete":
            width = int((lengths - hidden.sum(dim=1).numpy()).max())
            left = pool.packed_without(rows, hidden, width)
            return pool.read(subject.run(left.arguments), rows)
        whole = pool.packed(rows, hidden, int(lengths.max()))
        with without(pool.question, *whole, self.how) as inputs:
            return pool.read(subject.run(inputs.arguments), rows)


def _portions(wanted: Mapping[int, Ways], columns: int) -> Iterator[dict[int, Ways]]:
    """Groups of texts whose tables of hidden tokens are small enough to be built at once."""
    portion: dict[int, Ways] = {}
    rows = 0
    for text, ways in wanted.items():
        if portion and (rows + len(ways)) * columns > MOST_CELLS:
            yield portion
            portion, rows = {}, 0
        portion[text] = ways
        rows += len(ways)
    if portion:
        yield portion


class AnswerTable:
    """The answers of a model to one text without some of its tokens, by the set of tokens."""

    def __init__(self) -> None:
        self._keys: _Keys = np.empty(0, dtype="S1")  # sorted
        self._log_probability = np.empty(0, dtype=np.float32)
        self._chosen = np.empty(0, dtype=bool)

    def __len__(self) -> int:
        return len(self._keys)

    def unknown(self, ways: Ways) -> Ways:
        """The ways that have no answer yet, without repeats."""
        keys, first = np.unique(_keys(ways), return_index=True)
        return ways[first[~self._has(keys)]]

    def _has(self, keys: _Keys) -> NDArray[np.bool_]:
        if not len(self):
            return np.zeros(len(keys), dtype=bool)
        places = np.searchsorted(self._keys, keys).clip(max=len(self) - 1)
        known: NDArray[np.bool_] = self._keys[places] == keys
        return known

    def add(self, ways: Ways, log_probability: WayScores, chosen: WayMarks) -> None:
        """Store the answers to ways that had none."""
        new = _keys(ways)
        keys = np.concatenate([self._keys.astype(new.dtype), new])
        order = np.argsort(keys)
        self._keys = keys[order]
        both = np.concatenate([self._log_probability, log_probability.astype(np.float32)])
        self._log_probability = both[order]
        self._chosen = np.concatenate([self._chosen, chosen])[order]

    def of(self, ways: Ways) -> tuple[WayScores, WayMarks] | None:
        """The log-probability and the choice in each of these ways; None unless all are known."""
        if len(ways) and not len(self):
            return None
        keys = _keys(ways)
        places = np.searchsorted(self._keys, keys)
        np.minimum(places, len(self) - 1, out=places)
        if not (self._keys[places] == keys).all():
            return None
        return self._log_probability[places].astype(np.float64), self._chosen[places]


def _keys(ways: Ways) -> _Keys:
    """The bits of each way as one string of bytes."""
    bits = np.packbits(ways, axis=1)
    if not bits.shape[1]:  # a text without content has one way
        bits = np.zeros((len(ways), 1), dtype=np.uint8)
    keys: _Keys = np.ascontiguousarray(bits).view(f"S{bits.shape[1]}")[:, 0]
    return keys
