"""Texts without an end: they are explained in chunks, and nothing stays open between these."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any, TypeVar

from attlas.data.example import Example
from attlas.data.sources import DataRow
from attlas.errors import AttlasError, UsageError
from attlas.explaining.method_call import MethodCall, first_that_runs, methods_to_try, origin
from attlas.methods import METHODS, Method
from attlas.models.encoding.request import Request
from attlas.models.facts.fingerprint import identity
from attlas.models.subject import Subject
from attlas.results import Explanation
from attlas.version import __version__

Item = TypeVar("Item")
# Texts of similar length share batches, and are looked for within a chunk: so many texts fill a
# batch of each usual length, and their explanations still take little memory.
CHUNK = 512
CHUNK_WITH_MAPS = 32  # the maps of a text may take many megabytes
FIRST_CHUNK = 8  # the next ones double: the first explanations come soon
LOOKED_AT = 100  # rows, to find one that the model can read
TRIED = 8  # texts that fail one by one, before what was asked is taken to be the mistake
OF_ROWS = "explain_to"  # the verb that explains rows


@dataclass(frozen=True)
class TextStream:
    """How each chunk of texts is explained; what cannot be asked is refused when this is made.

    `explain_list` takes a list of texts and the name of a method, then what was asked as keywords.
    """

    explain_list: Callable[..., list[Explanation]]
    method: str | None
    maps: bool
    asked: Mapping[str, Any]  # target, contrast, position, prefix, chat, truncate, licence
    options: Mapping[str, Any]

    def __post_init__(self) -> None:
        request = shared_request(self.asked)
        first = methods_to_try(self.method, maps=self.maps)[0]
        MethodCall(first, request, self.options, self.maps)

    def explain(self, texts: Iterator[Any]) -> Iterator[Explanation]:
        """The explanations in the order of the texts, which are taken a chunk at a time."""
        method, start = self.method, 0
        notes: tuple[str, ...] = ()
        for chunk in growing(texts, CHUNK_WITH_MAPS if self.maps else CHUNK):
            try:
                chosen, why, explained = first_that_runs(method, self._run(chunk), maps=self.maps)
            except AttlasError as problem:
                problem.add_note(f"among texts {start + 1} to {start + len(chunk)} of the iterator")
                raise
            method, notes, start = chosen.name, notes or why, start + len(chunk)
            for each in explained:
                yield replace(each, notes=(*each.notes, *notes)) if notes else each

    def _run(self, texts: list[Any]) -> "Callable[[Method, tuple[str, ...]], Explained]":
        def run(chosen: Method, notes: tuple[str, ...]) -> Explained:
            asked = {**self.asked, "maps": self.maps, **self.options}
            return chosen, notes, self.explain_list(texts, chosen.name, **asked)

        return run


Explained = tuple[Method, tuple[str, ...], list[Explanation]]


def shared_request(asked: Mapping[str, Any]) -> Request:
    """What is asked about each of texts whose number is not known; a list has one for each text."""
    for name in ("target", "contrast", "position", "prefix"):
        value = asked.get(name)
        if isinstance(value, list) or getattr(value, "ndim", 0) > 0:
            raise UsageError(
                f"{name} is a list, which holds one for each text of a list of texts; "
                f"here give one {name} for all texts"
            )
    return Request(**{name: value for name, value in asked.items() if name != "licence"})


def chunks(items: Iterator[Item], size: int) -> Iterator[list[Item]]:
    """So many items at a time, as a list."""
    while chunk := list(islice(items, size)):
        yield chunk


def growing(items: Iterator[Item], most: int) -> Iterator[list[Item]]:
    """Lists of items: a few at first, then twice as many each time, up to so many."""
    size = min(FIRST_CHUNK, most)
    while chunk := list(islice(items, size)):
        yield chunk
        size = min(2 * size, most)


class RowExplainer:
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
        made = origin(self.call, self.subject, {}, OF_ROWS)
        return {
            **{"attlas": __version__, "model": made.model, **identity(self.subject)},
            **{"method": made.method, "options": made.options, "asked": made.asked},
        }

    def about(self) -> dict[str, Any]:
        """What readers of the scores must know beside the settings."""
        made = origin(self.call, self.subject, {}, OF_ROWS).to_dict()
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
