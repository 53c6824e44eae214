"""The verb `explain_to`: explain every row of data, and write the scores to a file."""

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from itertools import islice
from time import monotonic
from typing import Any

import pyarrow as pa

from attlas.data.example import Example
from attlas.data.read_examples import ReadData
from attlas.data.sources import DataRow, DataRows, read_rows
from attlas.errors import AttlasError
from attlas.explaining.explanations import explain
from attlas.explaining.method_call import MethodCall, methods_to_try, origin
from attlas.explaining.score_parts import SCHEMA, ScoreParts, check_out, score_row, stopped_note
from attlas.explaining.streams import CHUNK, chunks, shared_request
from attlas.methods import METHODS
from attlas.models.facts.fingerprint import identity
from attlas.models.subject import Subject, check_subject
from attlas.progress import Step, Watch
from attlas.results import Explanation
from attlas.verbs import verb
from attlas.version import __version__

VERB = "explain_to"
LOOKED_AT = 100  # rows, to find one that the model can read
SMALL_PART = 32  # texts, where each takes long: no more than these are done again after a kill
TRIED = 8  # texts that fail one by one, before what was asked is taken to be the mistake


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
    asked = {"target": target, "contrast": contrast, "position": position, "prefix": prefix}
    asked |= {"chat": chat, "truncate": truncate}
    call = MethodCall(
        methods_to_try(method, maps=False)[0], shared_request(asked), options, licence=licence
    )
    watch(Step("reading the data", 0, 0))
    source = data.examples if isinstance(data, ReadData) else data
    rows = read_rows(source, text=text, pair=pair, label=label, split=split, count=count, seed=seed)
    explain_list = partial(explain, subject, watch=lambda step: None)
    asked |= {"maps": False, "licence": licence, **options}
    explainer = _Explainer(subject, call, explain_list, asked)
    if method is None:
        explainer.choose(rows)
    try:
        return _Work(rows, explainer, watch, started).write(out)
    except KeyboardInterrupt as stopped:
        stopped.add_note(stopped_note(out))
        raise


class _Work:
    """The rows of some data on their way into a file, part by part."""

    def __init__(
        self, rows: DataRows, explainer: "_Explainer", watch: Watch, started: float
    ) -> None:
        self.rows, self.explainer, self.watch = rows, explainer, watch
        self.started, self.begun = started, monotonic()
        self.done = self.earlier = self.problems = 0

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
            count = 0
            for chunk in chunks(iter(self.rows), size):
                self._do(parts, count, chunk)
                count += 1
            self.watch(Step("joining the parts", self.done, len(self.rows)))
            counts = {"rows": self.done, "problems": self.problems}
            about = {"source": self.rows.source, "columns": self.rows.columns}
            parts.join(count, SCHEMA, {**self.explainer.about(), **about, **counts})
        return self._record(out)

    def _do(self, parts: ScoreParts, number: int, chunk: Sequence[DataRow]) -> None:
        """Do one part, unless it is done."""
        details = parts.read(number)
        if details is None:
            outcomes = self.explainer.outcomes(chunk)
            problems = sum(isinstance(each, str) for each in outcomes)
            details = {"rows": len(chunk), "problems": problems}
            records = [score_row(*each) for each in zip(chunk, outcomes, strict=True)]
            parts.write(number, pa.Table.from_pylist(records, SCHEMA), details)
        else:
            self.earlier += len(chunk)
        self.done += len(chunk)
        self.problems += details["problems"]
        self.explainer.works |= details["problems"] < len(chunk)
        self._tell()

    def _tell(self) -> None:
        total, new = len(self.rows), self.done - self.earlier
        what, left = f"{self.done:,} of {total:,} texts", None
        if new:
            rate = new / max(monotonic() - self.begun, 1e-9)
            what, left = f"{what}, {rate:,.0f} a second", (total - self.done) / rate
        else:
            self.begun = monotonic()
        self.watch(Step(what, self.done, total, left))

    def _part_size(self) -> int:
        call = self.explainer.call
        return SMALL_PART if call.licence or call.method.cost == "expensive" else CHUNK

    def _record(self, out: str | os.PathLike[str]) -> WrittenScores:
        rows, seconds = len(self.rows), monotonic() - self.started
        return WrittenScores(os.fspath(out), rows, self.problems, self.earlier, seconds)


class _Explainer:
    """Explains rows together, and finds those among them that cannot be explained."""

    def __init__(
        self,
        subject: Subject,
        call: MethodCall,
        explain_list: Callable[..., list[Explanation]],
        asked: Mapping[str, Any],
    ) -> None:
        self.subject, self.call = subject, call
        self.works = False  # whether any text was explained: so what was asked can be answered
        self._explain, self._asked = explain_list, asked
        self._failures: list[AttlasError] = []

    def settings(self) -> dict[str, Any]:
        """Everything that the scores of a text depend on."""
        made = origin(self.call, self.subject, {}, VERB)
        return {
            **{"attlas": __version__, "model": made.model, **identity(self.subject)},
            **{"method": made.method, "options": made.options, "asked": made.asked},
        }

    def about(self) -> dict[str, Any]:
        """What readers of the scores must know beside the settings."""
        made = origin(self.call, self.subject, {}, VERB).to_dict()
        return {name: made[name] for name in ("task", "signed", "reading", "paper", "versions")}

    def choose(self, rows: Iterable[DataRow]) -> None:
        """Take the best method that runs on the first text that can be explained."""
        problem: AttlasError | None = None
        for example in islice((row.example for row in rows if row.example), LOOKED_AT):
            try:
                (found,) = self._explain([example], None, **self._asked)
            except AttlasError as error:
                problem = error
            else:
                self.call = replace(self.call, method=METHODS[found.method])
                return
        if problem is not None:
            raise problem

    def outcomes(self, rows: Sequence[DataRow]) -> list[Explanation | str]:
        """The explanation of each row, or why it has none."""
        problems = [row.problem for row in rows]
        examples = [row.example for row in rows if row.example is not None]
        try:
            found: list[Explanation | str] = [*self._together(examples)]
        except AttlasError:
            refused = iter([self._why_unreadable(each) for each in examples])
            problems = [each or next(refused) for each in problems]
            rest = zip(rows, problems, strict=True)
            found = self._halved([row.example for row, why in rest if row.example and not why])
        if self._failures:  # as long as no text was explained, it is what was asked that is wrong
            raise self._failures[0]
        explained = iter(found)
        return [problem or next(explained) for problem in problems]

    def _together(self, examples: Sequence[Example]) -> list[Explanation]:
        if not examples:
            return []
        found = self._explain(list(examples), self.call.method.name, **self._asked)
        self.works = True
        self._failures.clear()
        return found

    def _why_unreadable(self, example: Example) -> str:
        try:
            self.subject.encode(example.text, self.call.request)
        except AttlasError as problem:
            return _one_line(problem)
        return ""

    def _halved(self, examples: Sequence[Example]) -> list[Explanation | str]:
        """Explain them together if that can be done, else each half by itself."""
        if len(self._failures) >= TRIED:
            return []  # an error is raised in any case
        try:
            return [*self._together(examples)]
        except AttlasError as problem:
            if len(examples) == 1:
                if not self.works:
                    self._failures.append(problem)
                return [_one_line(problem)]
        middle = len(examples) // 2
        return [*self._halved(examples[:middle]), *self._halved(examples[middle:])]


def _one_line(problem: Exception) -> str:
    return " ".join(str(problem).split())
