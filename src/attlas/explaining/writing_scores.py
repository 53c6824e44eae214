"""The verb `explain_to`: explain every row of data, and write the scores to a file."""

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from time import monotonic
from typing import Any

import pyarrow as pa

from attlas.data.read_examples import ReadData
from attlas.data.sources import DataRow, DataRows, read_rows
from attlas.engine import Engine, engine_of
from attlas.engine.pool import WorkerPool, pool_of
from attlas.engine.worker import Work
from attlas.errors import AttlasError
from attlas.explaining.explanations import explain
from attlas.explaining.long_lived import set_aside
from attlas.explaining.method_call import MethodCall, methods_to_try
from attlas.explaining.score_parts import SCHEMA, ScoreParts, score_row
from attlas.explaining.score_places import check_out, stopped_note
from attlas.explaining.streams import CHUNK, OF_ROWS, RowExplainer, chunks, shared_request
from attlas.models.subject import Subject, check_subject
from attlas.progress import Step, Watch
from attlas.verbs import verb

AHEAD = 2  # parts that a worker has been handed: they are short
SMALL_PART = 32  # texts, where each takes long: no more than these are done again after a kill
Part = tuple[pa.Table, dict[str, Any]]  # the scores of some rows, and how many have a problem


@dataclass(frozen=True)
class WrittenScores:
    """A file of scores: how many rows it has, and how many of them have a problem and no scores."""

    path: str
    rows: int
    problems: int
    earlier: int  # rows that were there already, from a run that was stopped
    seconds: float  # of this run

    def to_dict(self) -> dict[str, Any]:
        """The record as JSON."""
        return asdict(self)


@verb("explaining")
def explain_to(
    subject: Subject,
    data: Any,
    out: str | os.PathLike[str],
    method: str | None = None,
    target: Any = None,
    *,
    contrast: Any = None,
    position: Any = None,
    prefix: Any = None,
    text: str | None = None,
    pair: str | None = None,
    label: str | None = None,
    split: str | None = None,
    count: int | None = None,
    seed: int = 0,
    chat: bool = False,
    truncate: bool = False,
    licence: bool = False,
    engine: str | Engine = "local",
    watch: Watch = lambda step: None,
    **options: Any,
) -> WrittenScores:
    """Explain every row of some data, and write one row for each to a Parquet file.

    Files are read row by row, and memory does not grow with them. Work that was stopped goes on
    where it was if the same is asked again. A row that cannot be explained has the reason in the
    column `problem`.

    Args:
        subject: The model, from `attlas.load`.
        data: What `read_examples` takes: a file, a name, a DataFrame, a list. Repeated texts are
            kept.
        out: The file to write, `scores.parquet`. Until it is whole, its parts are in the folder
            `scores.parquet.parts` beside it.
        method: As in `explain`; so are the next four. One holds for all texts.
        target: What to explain.
        contrast: Explain the target against this one.
        position: Where the target is read.
        prefix: What the decoder has written so far.
        text: The column of the text.
        pair: The column of a second text.
        label: The column of the label.
        split: The split of a data set that has several.
        count: Draw this many rows; all by default.
        seed: Decides which rows are drawn.
        chat: Take each text as the message of a user, for the tokenizer's chat template.
        truncate: Cut texts that are too long for the model; each is a problem otherwise.
        licence: Say for each text whether its largest scores may be read as the tokens that matter.
        engine: "local", "ray", or an `attlas.Engine`: who does the work.
        watch: Called with a `Step` whenever a part is done.
        **options: The method's own options.

    Example:
        >>> import attlas
        >>> subject = attlas.load("sentiment")
        >>> written = attlas.explain_to(subject, ["so good", ""], "scores.parquet", "raw_attention")
        >>> (written.rows, written.problems)
        (2, 1)
    """
    started = monotonic()
    chosen = engine_of(engine)
    check_subject(subject, OF_ROWS)
    check_out(out)
    asked = {"target": target, "contrast": contrast, "position": position, "prefix": prefix}
    asked |= {"chat": chat, "truncate": truncate}
    call = MethodCall(
        methods_to_try(method, maps=False)[0], shared_request(asked), options, licence=licence
    )
    watch(Step("reading the data", 0, 0))
    source = data.examples if isinstance(data, ReadData) else data
    rows = read_rows(source, text=text, pair=pair, label=label, split=split, count=count, seed=seed)
    asked |= {"maps": False, "licence": licence, **options}
    explainer = _explainer(subject, call, asked)
    if method is None:
        explainer.choose(rows)
    work = (
        _Work(rows, explainer, watch, started)
        if chosen.is_alone
        else _SharedWork(rows, explainer, watch, started, chosen, asked)
    )
    try:
        with set_aside():
            return work.write(out)
    except KeyboardInterrupt as stopped:
        stopped.add_note(stopped_note(out))
        raise


def _explainer(subject: Subject, call: MethodCall, asked: Mapping[str, Any]) -> RowExplainer:
    return RowExplainer(subject, call, partial(explain, subject, watch=lambda step: None), asked)


def _scored(explainer: RowExplainer, rows: Sequence[DataRow]) -> Part:
    """The part of a file that some rows make."""
    outcomes = explainer.outcomes(rows)
    problems = sum(isinstance(each, str) for each in outcomes)
    records = [score_row(*each) for each in zip(rows, outcomes, strict=True)]
    return pa.Table.from_pylist(records, SCHEMA), {"rows": len(rows), "problems": problems}


class _Work:
    """The rows of some data on their way into a file, part by part."""

    def __init__(
        self, rows: DataRows, explainer: RowExplainer, watch: Watch, started: float
    ) -> None:
        self.rows, self.explainer, self.watch = rows, explainer, watch
        self.started, self.begun = started, monotonic()
        self.done = self.earlier = self.problems = self.parts = 0
        self.pool: WorkerPool | None = None  # of workers beside this process

    def write(self, out: str | os.PathLike[str]) -> WrittenScores:
        """Do what is left, and join the parts."""
        size = self._part_size()
        data = {"rows": len(self.rows), "digest": self.rows.fingerprint}
        settings = {**self.explainer.settings(), "data": data, "part": size}
        with ScoreParts(out, settings) as parts:
            found = parts.finished()
            if found is not None:
                self.problems, self.earlier = found["problems"], found["rows"]
                return self._record(out)
            self._fill(parts, size)
            self.watch(Step("joining the parts", self.done, len(self.rows)))
            counts = {"rows": self.done, "problems": self.problems}
            about = {"source": self.rows.source, "columns": self.rows.columns}
            parts.join(self.parts, SCHEMA, {**self.explainer.about(), **about, **counts})
        return self._record(out)

    def _fill(self, parts: ScoreParts, size: int) -> None:
        """Do every part that is not done."""
        for number, chunk in self._undone(parts, size):
            table, details = _scored(self.explainer, chunk)
            parts.write(number, table, details)
            self._count(number, details)

    def _undone(self, parts: ScoreParts, size: int) -> Iterator[tuple[int, list[DataRow]]]:
        """The rows of each part that is not done, by its number; those that are done are told."""
        for number, chunk in enumerate(chunks(iter(self.rows), size)):
            self.parts = number + 1
            details = parts.read(number)
            if details is None:
                yield number, chunk
            else:
                self.earlier += len(chunk)
                self._count(number, details)

    def _count(self, number: int, details: Mapping[str, Any]) -> None:
        """Count a part that is done."""
        self.done += details["rows"]
        self.problems += details["problems"]
        self.explainer.works |= details["problems"] < details["rows"]
        self._tell()

    def _tell(self) -> None:
        total, new = len(self.rows), self.done - self.earlier
        what, left = f"{self.done:,} of {total:,} texts", None
        if new:
            rate = new / max(monotonic() - self.begun, 1e-9)
            what, left = f"{what}, {rate:,.0f} a second", (total - self.done) / rate
        elif self.pool is None or not self.pool.ready:
            self.begun = monotonic()
        by = "" if self.pool is None else f"; {self.pool.state()}"
        self.watch(Step(f"{what}{by}", self.done, total, left))

    def _part_size(self) -> int:
        call = self.explainer.call
        return SMALL_PART if call.licence or call.method.cost == "expensive" else CHUNK

    def _record(self, out: str | os.PathLike[str]) -> WrittenScores:
        rows, seconds = len(self.rows), monotonic() - self.started
        return WrittenScores(os.fspath(out), rows, self.problems, self.earlier, seconds)


@dataclass(frozen=True)
class ScoreWork(Work):
    """What workers do for `explain_to`: a piece is some rows, and whether others were explained."""

    call: MethodCall
    asked: Mapping[str, Any]

    def begin(self, subject: Subject | None) -> Callable[[tuple[list[DataRow], bool]], Part]:
        """Explain with this model from now on."""
        assert subject is not None

        def score(piece: tuple[list[DataRow], bool]) -> Part:
            explainer = _explainer(subject, self.call, self.asked)
            rows, explainer.works = piece
            return _scored(explainer, rows)

        return score


class _SharedWork(_Work):
    """The same, done by workers; this process writes what they find.

    As in one process, texts that fail are problems of theirs only if a text of an earlier part was
    explained. Parts are done in any order: one that fails waits until that is known.
    """

    def __init__(
        self,
        rows: DataRows,
        explainer: RowExplainer,
        watch: Watch,
        started: float,
        engine: Engine,
        asked: Mapping[str, Any],
    ) -> None:
        super().__init__(rows, explainer, watch, started)
        self.engine, self.asked = engine, asked
        self.first: int | None = None  # the first part with a text that was explained
        self.open: dict[int, list[DataRow]] = {}
        self.failed: dict[int, AttlasError] = {}

    def _fill(self, parts: ScoreParts, size: int) -> None:
        work = ScoreWork(self.explainer.call, self.asked)
        self.watch(Step("joining the cluster", 0, len(self.rows)))
        with pool_of(self.engine, work, self.explainer.subject, ahead=AHEAD) as self.pool:
            for name, found in self.pool.results(self._pieces(parts, size), self._tell):
                number = int(name)
                if isinstance(found, AttlasError):
                    self.failed[number] = found
                else:
                    table, details = found
                    parts.write(number, table, details)
                    del self.open[number]
                    self._count(number, details)
                self._settle()

    def _pieces(self, parts: ScoreParts, size: int) -> Iterator[tuple[str, Any]]:
        for number, chunk in self._undone(parts, size):
            self.open[number] = chunk
            yield str(number), (chunk, self._works_before(number))

    def _count(self, number: int, details: Mapping[str, Any]) -> None:
        if details["problems"] < details["rows"]:
            self.first = number if self.first is None else min(self.first, number)
        super()._count(number, details)

    def _works_before(self, number: int) -> bool:
        return self.first is not None and self.first < number

    def _settle(self) -> None:
        """Decide on parts that failed, the first one first."""
        for number in sorted(self.failed):
            if self._works_before(number):
                del self.failed[number]
                assert self.pool is not None
                self.pool.put(str(number), (self.open[number], True))
            elif number == min(self.open):
                raise self.failed[number]
