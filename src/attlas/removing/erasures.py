"""Erasures: a model's answers to texts without some of their tokens, each asked for once."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from attlas.errors import UsageError
from attlas.models.asking.filling import NEAR, can_fill, split_by_length
from attlas.models.asking.memory import in_fitting_batches, plain_tokens
from attlas.models.asking.question import Question
from attlas.models.facts.evaluation_mode import evaluation_mode
from attlas.removing.pooling import Pool, Rows, find_texts
from attlas.removing.removal import check_removal, without
from attlas.shapes import Logits, WayDistributions, WayMarks, Ways, WayScores

__all__ = ["Erasures", "Outcomes", "Ways"]
MOST_CELLS = 2**28  # entries of the table of hidden tokens that is built at once
_Keys = NDArray[Any]  # strings of bytes, all of one length
_Read = Callable[[Logits, Rows], Tensor]  # what is kept of the outputs of a batch


@dataclass(frozen=True, eq=False)
class Outcomes:
    """The model's answers to one text with different sets of tokens removed.

    A text of which nothing would be left has no answer: NaN. `distribution` has a column for each
    answer that the model can give. Of many answers, the likeliest to the whole text have a column
    each, and all others share the last one. A target of several tokens has the columns of each,
    divided by their number.
    """

    log_probability: WayScores  # of the target
    chosen: WayMarks  # whether the target is still the model's first choice
    distribution: WayDistributions
    known: dict[Any, Any] = field(default_factory=dict, init=False, repr=False)  # computed of them

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
            nothing = np.zeros((1, ways.shape[1]), dtype=bool)
            self.ask({text: ways if len(ways) else nothing})
            known = self._answers[text].of(ways)
        assert known is not None
        return known

    def forget(self, text: int) -> None:
        """Drop the answers to one text."""
        self._answers[text] = AnswerTable()

    def work(self, text: int) -> int:
        """About how much the model computes for one way: its weights times the tokens."""
        question = self._texts[text].question
        weights = sum(each.numel() for each in question.subject.model.parameters())
        return weights * len(question.inputs.tokens[0])

    def known(self) -> list[tuple[int, bytes, list[float]]]:
        """All answers that are known: the text, the way and the answer."""
        return [(text, *row) for text, table in self._answers.items() for row in table.entries()]

    def restore(self, text: int, ways: Sequence[bytes], answers: NDArray[Any]) -> None:
        """Take over what `known` returned of a text before."""
        self._answers[text].restore(ways, answers)

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
        with torch.no_grad(), evaluation_mode(pool.question.subject.model):
            if pool.options is None:
                everything = np.arange(len(pool.lengths))
                nothing = np.zeros((len(everything), hidden.shape[1]), dtype=bool)
                pool.options = self._read(pool, everything, nothing, pool.likeliest).long()
            found = self._read(pool, rows, hidden, pool.read).numpy()
        ends = np.cumsum([len(ways) for ways in wanted.values()])[:-1]
        for (text, ways), answers in zip(wanted.items(), np.split(found, ends), strict=True):
            self._answers[text].add(ways, answers)

    def _read(self, pool: Pool, rows: Rows, hidden: NDArray[np.bool_], read: _Read) -> Tensor:
        """What `read` makes of the answers, a row for each; NaN where nothing would be left."""
        found: Tensor | None = None
        for batch in self._batches(pool, rows, hidden):
            answers = self._run(pool, rows[batch], torch.from_numpy(hidden[batch]), read)
            if found is None:
                found = answers.new_full((len(rows), answers.shape[1]), torch.nan)
            found[batch] = answers
        if found is None:
            return torch.full((len(rows), 2 + pool.option_count), torch.nan)
        return found

    def _lengths(self, pool: Pool, rows: Rows, hidden: NDArray[np.bool_]) -> NDArray[np.intp]:
        """The length of each row when it is run, `[row, stream]`."""
        lengths = pool.lengths[rows]
        if self.how == "delete":
            for number, stream in enumerate(pool.streams):
                lengths[:, number] -= hidden[:, stream.start : stream.stop].sum(axis=1)
        return lengths

    def _batches(self, pool: Pool, rows: Rows, hidden: NDArray[np.bool_]) -> Iterator[Rows]:
        """Which rows share a batch: those of the same length when they are run, or filled up."""
        lengths = self._lengths(pool, rows, hidden)
        device = pool.question.subject.device
        most = plain_tokens(device)
        left = np.flatnonzero((lengths > 0).all(axis=1))
        if not len(left):
            return
        lengths = lengths[left]
        if self._packs(pool):
            for batch in split_by_length(lengths[:, 0], NEAR[device.type], most):
                yield left[batch]
            return
        kinds, kind = np.unique(lengths, axis=0, return_inverse=True)
        order = left[np.argsort(kind.ravel(), kind="stable")]
        groups = np.split(order, np.cumsum(np.bincount(kind.ravel()))[:-1])
        for group, length in zip(groups, kinds.sum(axis=1).tolist(), strict=True):
            step = max(most // length, 1)
            yield from (group[start : start + step] for start in range(0, len(group), step))

    def _run(self, pool: Pool, rows: Rows, hidden: Tensor, read: _Read) -> Tensor:
        """The answers to one batch, a row for each; it is halved if memory is short."""

        def work(numbers: Sequence[int]) -> Tensor:
            index = np.asarray(numbers, dtype=np.intp)
            own = rows[index]
            return read(self._answer(pool, own, hidden[index]), own)

        too_large = f"{pool.question.subject.name} cannot take one text of {hidden.shape[1]} tokens"
        found = in_fitting_batches(range(len(rows)), work, too_large, "changed texts")
        return torch.cat(list(found)).cpu()

    def _packs(self, pool: Pool) -> bool:
        """Whether rows of similar lengths share a batch."""
        return pool.question.subject.device.type in NEAR and can_fill(pool.question)

    def _answer(self, pool: Pool, rows: Rows, hidden: Tensor) -> Logits:
        if self._packs(pool):
            return self._answer_packed(pool, rows, hidden)
        subject = pool.question.subject
        make = pool.filled_batch if self.how == "delete" else pool.batch
        first = pool.first_place if subject.predicts_next else None
        with without(pool.question, *make(rows, hidden), self.how) as inputs:
            return subject.run(inputs.arguments, first)

    def _answer_packed(self, pool: Pool, rows: Rows, hidden: Tensor) -> Logits:
        lengths, subject = pool.lengths[rows][:, 0], pool.question.subject
        if self.how == "delete":
            width = int((lengths - hidden.sum(dim=1).numpy()).max())
            left = pool.packed_without(rows, hidden, width)
            return subject.run(left.arguments)
        whole = pool.packed(rows, hidden, int(lengths.max()))
        with without(pool.question, *whole, self.how) as inputs:
            return subject.run(inputs.arguments)


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
    """The answers of a model to one text without some of its tokens, by the set of tokens.

    An answer is a row: the target's log-probability, whether it is chosen, the distribution.
    """

    def __init__(self) -> None:
        self._keys: _Keys = np.empty(0, dtype="S1")  # sorted
        self._rows: NDArray[Any] = np.empty((0, 0), dtype=np.float32)

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

    def add(self, ways: Ways, rows: NDArray[Any]) -> None:
        """Store the answers to ways that had none."""
        new = _keys(ways)
        keys = np.concatenate([self._keys.astype(new.dtype), new])
        order = np.argsort(keys)
        self._keys = keys[order]
        self._rows = np.concatenate([self._rows, rows])[order] if len(self._rows) else rows[order]

    def entries(self) -> list[tuple[bytes, list[float]]]:
        """Each way as bytes, and its answer."""
        return list(zip(self._keys.tolist(), self._rows.tolist(), strict=True))

    def restore(self, keys: Sequence[bytes], rows: NDArray[Any]) -> None:
        """Take over the entries of an earlier table."""
        self._keys, self._rows = np.array(keys, dtype=bytes), rows.astype(np.float32)

    def of(self, ways: Ways) -> Outcomes | None:
        """The answers in each of these ways; None unless all are known."""
        if not len(self):
            return None
        keys = _keys(ways)
        places = np.searchsorted(self._keys, keys)
        np.minimum(places, len(self) - 1, out=places)
        if not (self._keys[places] == keys).all():
            return None
        rows = self._rows[places].astype(np.float64)
        return Outcomes(rows[:, 0], rows[:, 1] > 0, rows[:, 2:])


def _keys(ways: Ways) -> _Keys:
    """The bits of each way as one string of bytes."""
    bits = np.packbits(ways, axis=1)
    if not bits.shape[1]:  # a text without content has one way
        bits = np.zeros((len(ways), 1), dtype=np.uint8)
    keys: _Keys = np.ascontiguousarray(bits).view(f"S{bits.shape[1]}")[:, 0]
    return keys
