"""The texts of an audit: those that the model can read, and the rows that are left out."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from attlas.data.example import Example
from attlas.data.read_examples import LeftOut, ReadData, read_examples
from attlas.data.sets.catalogue import DATA_SETS
from attlas.errors import UsageError
from attlas.models.asking.question import Question
from attlas.models.encoding.request import Request
from attlas.models.subject import Subject
from attlas.shapes import TextGroups

BATCH_SIZE = {"cpu": 24, "cuda": 512}  # texts that are worked on together
UNKNOWN = "the model does not know the label"
UNLABELLED = "no label, though other rows have one"
SHORT = "fewer than two tokens that can be removed"
LEAST = 2  # texts: one to choose by, one to test on
SHOWN = 60  # characters of a row that is left out


@dataclass(frozen=True, eq=False)
class AuditTexts:
    """The examples that the model can read, each known by its number, and the rows left out.

    `gold` holds the number of each text's label if the model knows the labels of the data.
    """

    subject: Subject
    examples: Sequence[Example]
    lengths: Sequence[int]  # in tokens
    counts: Counter[int]  # of each token id over all texts
    left_out: Sequence[LeftOut]
    gold: Sequence[int] | None
    notes: tuple[str, ...]
    request: Request
    seed: int
    _asked: dict[int, list[Question]] = field(default_factory=dict, init=False, repr=False)

    def __len__(self) -> int:
        return len(self.examples)

    @cached_property
    def ranks(self) -> NDArray[np.int64]:
        """The place of each text in a random order; expensive work is done on the first ones."""
        ranks = np.empty(len(self), dtype=np.int64)
        ranks[np.random.default_rng([self.seed, 1]).permutation(len(self))] = np.arange(len(self))
        return ranks

    def drawn(self, count: int) -> list[int]:
        """The numbers of this many texts, drawn by the seed, in ascending order."""
        return np.flatnonzero(self.ranks < count).tolist()

    def batches(self, drawn: int) -> list[list[int]]:
        """The numbers of the texts in batches of similar length, the shortest first.

        The drawn texts come last and by themselves: on a device that is not filled, expensive work
        takes as long for many as for few.
        """
        most = BATCH_SIZE.get(self.subject.device.type, 64)
        order = sorted(range(len(self)), key=lambda text: (self.lengths[text], text))
        is_drawn = self.ranks[order] < drawn
        parts = [np.array(order)[~is_drawn], np.array(order)[is_drawn]]
        return [
            batch.tolist()
            for part in parts
            if len(part)
            for batch in np.array_split(part, -(-len(part) // most))
        ]

    def ask_drawn(self, count: int) -> list[Question]:
        """Questions about the drawn texts, numbered by their place in `drawn`; asked only once."""
        if count not in self._asked:
            self._asked[count] = self.ask(self.drawn(count))
        return self._asked[count]

    def ask(self, texts: Sequence[int]) -> list[Question]:
        """Questions about these texts, numbered by their place in the list."""
        return list(self.subject.ask([self.examples[text].text for text in texts], self.request))

    @cached_property
    def groups(self) -> TextGroups | None:
        """The group of each text, if the data say which texts belong together."""
        names = [each.fields.get("cluster") for each in self.examples]
        if all(name is None for name in names):
            return None
        keys = [
            ("text", number) if name is None else ("group", str(name))
            for number, name in enumerate(names)
        ]
        known = {key: number for number, key in enumerate(dict.fromkeys(keys))}
        return np.array([known[key] for key in keys])


def usable_texts(
    subject: Subject,
    read: ReadData,
    request: Request,
    seed: int,
    verb: str = "an audit",
    least: int = LEAST,
) -> AuditTexts:
    """The examples that the model can read; each of the others is listed with the reason."""
    left_out = list(read.left_out)
    gold, notes = _gold(subject, read.examples)
    kept: list[int] = []
    lengths: list[int] = []
    counts: Counter[int] = Counter()
    for number, example in enumerate(read.examples):
        problem = "" if gold is None or gold[number] is not None else _label_problem(example)
        if not problem:
            try:
                inputs = subject.encode(example.text, request)
                problem = SHORT if inputs.tokens[0].special.count(False) < 2 else ""
            except UsageError as refused:
                problem = " ".join(str(refused).split())
        if problem:
            left_out.append(LeftOut(_row(example, number), problem, _shown(example)))
            continue
        kept.append(number)
        lengths.append(len(inputs.tokens[0]))
        ids = inputs.arguments.get(inputs.source.argument)
        if ids is not None and ids.ndim == 2:
            counts.update(ids[0].tolist())
    if len(kept) < least:
        short = _too_few(len(kept), left_out)
        raise UsageError(f"{verb} needs at least {least} text{'s' * (least > 1)}, and {short}")
    labels = None if gold is None else [label for n in kept if (label := gold[n]) is not None]
    examples = [read.examples[number] for number in kept]
    return AuditTexts(
        subject,
        examples,
        lengths,
        counts,
        left_out,
        labels,
        (*_columns(read), *notes),
        request,
        seed,
    )


def read_training(source: Any) -> ReadData:
    """Labelled examples to train on; of a data set known by name, those of its train split."""
    name = source.lower().replace("-", "_") if isinstance(source, str) else ""
    has_split = name in DATA_SETS and "train" in DATA_SETS[name].splits
    return read_examples(source, split="train" if has_split else None).labelled("training")


def _label_problem(example: Example) -> str:
    return UNLABELLED if example.label is None else UNKNOWN


def _gold(
    subject: Subject, examples: Sequence[Example]
) -> tuple[list[int | None] | None, tuple[str, ...]]:
    """The number of each label if the model knows the labels, and notes for the report."""
    labels = [each.label for each in examples]
    if all(label is None for label in labels):
        return None, ()
    if subject.task is None or subject.task.name != "sequence classification":
        return None, ("The data have labels, but the model does not predict one for each text.",)
    names = {name.casefold(): number for number, name in enumerate(subject.labels)}
    known = [None if label is None else names.get(str(label).casefold()) for label in labels]
    if any(number is not None for number in known):
        return known, ()
    numbers = {str(number): number for number in range(len(subject.labels))}
    if all(str(label) in numbers for label in labels if label is not None):
        shown = ", ".join(f"{number} = {name}" for number, name in enumerate(subject.labels))
        return [numbers.get(str(label)) for label in labels], (f"Labels were read as {shown}.",)
    shown = ", ".join(sorted({str(label) for label in labels if label is not None})[:6])
    return None, (
        f"The labels of the data ({shown}) are none of the model's "
        f"({', '.join(subject.labels[:6])}): its accuracy is not known.",
    )


def _columns(read: ReadData) -> Iterator[str]:
    if read.columns:
        yield ", ".join(f"{what} from {column!r}" for what, column in read.columns.items())


def _row(example: Example, number: int) -> int | str:
    row = example.fields.get("row", number + 1)
    return row if isinstance(row, (int, str)) else number + 1


def _shown(example: Example) -> str:
    line = " ".join(str(example.text).split())
    return line if len(line) <= SHOWN else line[: SHOWN - 1] + "…"


def _too_few(kept: int, left_out: Sequence[LeftOut]) -> str:
    reasons = Counter(each.reason for each in left_out).most_common(3)
    shown = "".join(f"; left out: {count} × {reason}" for reason, count in reasons)
    return f"there are {kept}{shown}"
