"""The verb `explain_to`: explain every row of data, and write the scores to a file."""

import os
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import asdict, dataclass
from time import monotonic, sleep
from typing import Any
from warnings import warn

from attlas.data.read_examples import ReadData
from attlas.data.sources import DataRow, DataRows, read_rows
from attlas.explaining.method_call import MethodCall, methods_to_try
from attlas.explaining.row_explainer import VERB, RowExplainer
from attlas.explaining.score_parts import SCHEMA, ScoreParts, check_out, stopped_note
from attlas.explaining.score_sharing import check_workers, others, write_part
from attlas.explaining.streams import CHUNK, chunks, shared_request
from attlas.models.subject import Subject, check_subject
from attlas.progress import Step, Watch
from attlas.verbs import verb

SMALL_PART = 32  # texts, where each takes long: no more than these are done again after a kill
POLL_SECONDS = 0.2  # how often the parts of other processes are looked for


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
    workers: int = 1,
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
        workers: How many processes explain at once; each has a copy of the model. Where texts are
            short, one process keeps no GPU busy.
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
    check_subject(subject, VERB)
    check_out(out)
    check_workers(workers)
    asked = {"target": target, "contrast": contrast, "position": position, "prefix": prefix}
    asked |= {"chat": chat, "truncate": truncate}
    call = MethodCall(
        methods_to_try(method, maps=False)[0], shared_request(asked), options, licence=licence
    )
    watch(Step("reading the data", 0, 0))
    source = data.examples if isinstance(data, ReadData) else data
    rows = read_rows(source, text=text, pair=pair, label=label, split=split, count=count, seed=seed)
    asked |= {"maps": False, "licence": licence, **options}
    explainer = RowExplainer(subject, call, asked)
    if method is None:
        explainer.choose(rows)
    try:
        return _Work(rows, explainer, workers, watch, started).write(out)
    except KeyboardInterrupt as stopped:
        stopped.add_note(stopped_note(out))
        raise


class _Work:
    """The rows of some data on their way into a file, part by part."""

    def __init__(
        self, rows: DataRows, explainer: RowExplainer, workers: int, watch: Watch, started: float
    ) -> None:
        self.rows, self.explainer, self.workers, self.watch = rows, explainer, workers, watch
        self.started, self.begun = started, monotonic()
        self.done = self.earlier = self.problems = 0
        self.size = self._part_size()

    def write(self, out: str | os.PathLike[str]) -> WrittenScores:
        """Do what is left, and join the parts."""
        data = {"rows": len(self.rows), "digest": self.rows.fingerprint}
        settings = {**self.explainer.settings(), "data": data, "part": self.size}
        with ScoreParts(out, settings) as parts:
            found = parts.finished()
            if found is not None:
                self.problems, self.earlier = found["problems"], found["rows"]
                return self._record(out)
            self._do_all(parts)
            self.watch(Step("joining the parts", self.done, len(self.rows)))
            counts = {"rows": self.done, "problems": self.problems}
            about = {"source": self.rows.source, "columns": self.rows.columns}
            parts.join(self._count, SCHEMA, {**self.explainer.about(), **about, **counts})
        return self._record(out)

    @property
    def _count(self) -> int:
        return -(-len(self.rows) // self.size)

    def _do_all(self, parts: ScoreParts) -> None:
        """Do the parts that no other process claims, and then what the others have left."""
        before, own = parts.there(), set[int]()
        if self._count - len(before) < self.workers:
            self.workers = 1
        with others(self.explainer, self.rows, parts, self.size, self.workers) as beside:
            for number, chunk in self._chunks():
                if not beside or parts.claim(number):
                    own.add(number)
                    self._do(parts, number, chunk)
                    self._tell(parts, before)
            while len(parts.there()) < self._count and any(each.is_running for each in beside):
                sleep(POLL_SECONDS)
                self._tell(parts, before)
            for reason in filter(None, [each.failure for each in beside]):
                warn(f"one process ended early ({reason}); its texts are done here", stacklevel=2)
        theirs = set(range(self._count)) - own
        left = {each for each in theirs if not self._take(parts.read(each), each in before)}
        for number, chunk in self._chunks() if left else ():
            if number in left:
                self._do(parts, number, chunk)
                self._tell(parts, before)

    def _chunks(self) -> Iterator[tuple[int, list[DataRow]]]:
        return enumerate(chunks(iter(self.rows), self.size))

    def _do(self, parts: ScoreParts, number: int, chunk: Sequence[DataRow]) -> None:
        """Do one part, unless it is done."""
        if not self._take(parts.read(number), True):
            self._take(write_part(parts, self.explainer, number, chunk), False)

    def _take(self, details: Mapping[str, int] | None, earlier: bool) -> bool:
        """Count the rows of a part that is done; whether it is."""
        if details is None:
            return False
        rows, problems = details["rows"], details["problems"]
        self.done += rows
        self.earlier += rows if earlier else 0
        self.problems += problems
        self.explainer.works |= problems < rows
        return True

    def _tell(self, parts: ScoreParts, before: Set[int]) -> None:
        total, done, earlier = len(self.rows), self.done, self.earlier
        if self.workers > 1:  # the others have done more
            there = len(parts.there())
            done, earlier = (min(each * self.size, total) for each in (there, len(before)))
        what, left = f"{done:,} of {total:,} texts", None
        if done > earlier:
            rate = (done - earlier) / max(monotonic() - self.begun, 1e-9)
            what, left = f"{what}, {rate:,.0f} a second", (total - done) / rate
        else:
            self.begun = monotonic()
        self.watch(Step(what, done, total, left))

    def _part_size(self) -> int:
        call = self.explainer.call
        return SMALL_PART if call.licence or call.method.cost == "expensive" else CHUNK

    def _record(self, out: str | os.PathLike[str]) -> WrittenScores:
        rows, seconds = len(self.rows), monotonic() - self.started
        return WrittenScores(os.fspath(out), rows, self.problems, self.earlier, seconds)
