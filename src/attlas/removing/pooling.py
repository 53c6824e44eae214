"""Pools: texts of many lengths in one table, so that batches need only tensor operations."""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from attlas.errors import UsageError
from attlas.models.asking.question import Question
from attlas.models.encoding.inputs import Inputs, Stream
from attlas.models.encoding.target import Target
from attlas.removing.operators import cut
from attlas.removing.removal import removable
from attlas.shapes import Logits

MOST_OPTIONS = 63  # answers that are told apart; all others are one
Rows = NDArray[np.intp]  # for each row of a batch, the number of its text in the pool


@dataclass(frozen=True, eq=False)
class Text:
    """One text: a row of a question, and the positions of its content."""

    question: Question
    row: int
    content: list[int]

    @property
    def inputs(self) -> Inputs:
        """The inputs of its question."""
        return self.question.inputs

    @property
    def target(self) -> Target:
        """The target of its row."""
        return self.question.targets[self.row]

    @property
    def form(self) -> Hashable:
        """A key: texts with the same form can share a pool."""
        arguments = tuple(
            (name, tuple(value.shape[1:]) if value.ndim > 2 else ())
            for name, value in sorted(self.inputs.arguments.items())
        )
        return arguments, self.target.link, len(self.target.picks)


def find_texts(questions: Sequence[Question]) -> dict[int, Text]:
    """All texts of these questions, by number."""
    found: dict[int, Text] = {}
    for question in questions:
        for row, number in enumerate(question.order):
            if number in found or question.is_shared:
                raise UsageError(f"text {number} has several targets: ask about one of them")
            _check_target(question.targets[row])
            found[number] = Text(question, row, removable(question, row))
    return found


def _check_target(target: Target) -> None:
    if target.link == "identity":
        raise UsageError(f"{target.name!r} is a value: it has no probability that could fall")
    if target.either:
        raise UsageError(f"{target.name!r} are several targets: ask about one of them")
    if target.contrast:
        raise UsageError(
            f"{target.name!r} is contrasted with {target.contrast_name!r}: ask about it alone"
        )


class Pool:
    """Texts of one form, each stream padded to the longest, with the target of each text."""

    def __init__(self, texts: Sequence[Text]) -> None:
        self.question = texts[0].question
        self.lengths = np.array([[len(s.positions) for s in t.inputs.streams()] for t in texts])
        self._inputs = _side_by_side(texts, self.lengths.max(axis=0))
        self._filler = torch.from_numpy(self._fill())
        self._picks = torch.tensor([text.target.picks for text in texts])
        self._columns = [self._place(text) for text in texts]
        self.options: Tensor | None = None  # the answers told apart, `[text, pick · option]`

    @property
    def option_count(self) -> int:
        """The columns of a distribution."""
        assert self.options is not None
        return self.options.shape[1] + self._picks.shape[1]

    @property
    def streams(self) -> list[Stream]:
        """The columns of each stream."""
        return self._inputs.streams()

    @property
    def first_place(self) -> int:
        """The earliest place of the output that any target uses, counted from the end."""
        return int(self._picks[..., 0].min())

    def _fill(self) -> NDArray[np.bool_]:
        """The columns behind the end of each text, `[text, column]`."""
        parts = [
            np.arange(len(stream.positions)) >= self.lengths[:, [number]]
            for number, stream in enumerate(self.streams)
        ]
        return np.concatenate(parts, axis=1)

    def _place(self, text: Text) -> Rows:
        """The columns of a text's content tokens."""
        pairs = zip(text.inputs.streams(), self.streams, strict=True)
        found = [
            place - own.start + stream.start
            for own, stream in pairs
            for place in text.content
            if own.start <= place < own.stop
        ]
        return np.array(found, dtype=np.intp)

    def spread(self, text: int, ways: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Sets of a text's content tokens, `[way, token]`, spread over all columns."""
        hidden = np.zeros((len(ways), self._filler.shape[1]), dtype=bool)
        hidden[:, self._columns[text]] = ways
        return hidden

    def batch(self, rows: Rows, hidden: Tensor) -> tuple[Inputs, Tensor]:
        """Texts of equal length without padding, and their hidden tokens, `[row, token]`."""
        filler = self._filler[rows]
        return cut(self._take(rows), filler), hidden[~filler].view(len(rows), -1)

    def filled_batch(self, rows: Rows, hidden: Tensor) -> tuple[Inputs, Tensor]:
        """Texts of any length with all columns; padding counts as hidden."""
        return self._take(rows), hidden | self._filler[rows]

    def packed(self, rows: Rows, hidden: Tensor, width: int) -> tuple[Inputs, Tensor]:
        """Texts of any length up to a width; padding gets no attention."""
        inputs = self._take(rows)
        names = inputs.companions(inputs.source)
        arguments = {
            name: value[:, :width] if name in names else value
            for name, value in inputs.arguments.items()
        }
        source = replace(inputs.source, stop=inputs.source.start + width)
        return replace(inputs, arguments=arguments, source=source), hidden[:, :width]

    def packed_without(self, rows: Rows, hidden: Tensor, width: int) -> Inputs:
        """Like `packed`, with the hidden tokens deleted: all others move to the front."""
        inputs = self._take(rows)
        device = inputs.arguments[inputs.source.argument].device
        gone = (hidden | self._filler[torch.from_numpy(rows)]).to(device)
        order = gone.to(torch.uint8).argsort(dim=1, stable=True)[:, :width]
        beyond = gone.gather(1, order)
        arguments = dict(inputs.arguments)
        for name in inputs.companions(inputs.source):
            arguments[name] = arguments[name].gather(1, order)
        arguments["attention_mask"] = arguments["attention_mask"].masked_fill(beyond, 0)
        source = replace(inputs.source, stop=inputs.source.start + width)
        return replace(inputs, arguments=arguments, source=source)

    def _take(self, rows: Rows) -> Inputs:
        index = torch.from_numpy(rows)
        arguments = {
            name: value.index_select(0, index.to(value.device))
            for name, value in self._inputs.arguments.items()
        }
        tokens = tuple(self._inputs.tokens[row] for row in rows)
        return replace(self._inputs, arguments=arguments, tokens=tokens)

    def likeliest(self, logits: Logits, rows: Rows) -> Tensor:
        """The answers to tell apart, given those to the whole texts, `[row, pick · option]`."""
        table = self._picked(logits, rows)
        picks = self._picks[rows].to(logits.device)
        if self._link == "sigmoid":
            return picks[..., 1].float()
        return table.topk(min(MOST_OPTIONS, table.shape[-1])).indices.flatten(1).float()

    def read(self, logits: Logits, rows: Rows) -> Tensor:
        """For each row, the target's log-probability, whether it is chosen, the distribution."""
        assert self.options is not None
        table, picks = self._picked(logits, rows), self._picks[rows].to(logits.device)
        chosen = (table.argmax(dim=-1) == picks[..., 1]).all(dim=-1)
        link = torch.nn.functional.logsigmoid if self._link == "sigmoid" else _log_softmax
        table = link(table)
        total = table.gather(-1, picks[..., 1:])[..., 0].sum(dim=-1)
        options = self.options[rows].to(logits.device).unflatten(1, (picks.shape[1], -1))
        apart = table.gather(-1, options).exp()
        rest = (1 - apart.sum(dim=-1, keepdim=True)).clamp_min(0)
        distribution = torch.cat([apart, rest], dim=-1).flatten(1) / picks.shape[1]
        return torch.cat([total[:, None], chosen[:, None].to(total), distribution], dim=1)

    @property
    def _link(self) -> str:
        return self.question.targets[0].link

    def _picked(self, logits: Logits, rows: Rows) -> Tensor:
        """The outputs at the places of each row's target, `[row, pick, choice]`."""
        picks = self._picks[rows].to(logits.device)
        batch = torch.arange(len(logits), device=logits.device)[:, None]
        at = logits[batch, picks[..., 0]]
        return at if at.dtype == torch.float64 else at.float()


def _log_softmax(table: Tensor) -> Tensor:
    return table.log_softmax(dim=-1)


def _side_by_side(texts: Sequence[Text], widths: NDArray[np.intp]) -> Inputs:
    """One batch of all texts, padded with zeros to the longest."""
    first = texts[0].inputs
    arguments: dict[str, Tensor] = {}
    streams: list[Stream] = []
    for stream, width in zip(first.streams(), widths.tolist(), strict=True):
        start = streams[-1].stop if streams else 0
        streams.append(replace(stream, start=start, stop=start + width))
        if first.arguments[stream.argument].ndim == 2:
            for name in first.companions(stream):
                own = [text.inputs.arguments[name][text.row] for text in texts]
                arguments[name] = torch.stack([_filled(each, width) for each in own])
    for name in first.arguments.keys() - arguments.keys():
        arguments[name] = torch.stack([text.inputs.arguments[name][text.row] for text in texts])
    return Inputs(
        arguments,
        tuple(text.inputs.tokens[text.row] for text in texts),
        (),
        streams[0],
        streams[1] if first.prefix else None,
        picture=streams[-1] if first.picture else None,
    )


def _filled(values: Tensor, width: int) -> Tensor:
    return torch.nn.functional.pad(values, (0, width - len(values)))
