"""Rows of data explained together, and those among them found that cannot be explained."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import islice
from typing import Any

from attlas.data.example import Example
from attlas.data.sources import DataRow
from attlas.errors import AttlasError
from attlas.explaining.explanations import explain
from attlas.explaining.method_call import MethodCall, origin
from attlas.methods import METHODS
from attlas.models.facts.fingerprint import identity
from attlas.models.subject import Subject
from attlas.results import Explanation
from attlas.version import __version__

VERB = "explain_to"
LOOKED_AT = 100  # rows, to find one that the model can read
TRIED = 8  # texts that fail one by one, before what was asked is taken to be the mistake


class RowExplainer:
    """Explains rows together, and finds those among them that cannot be explained."""

    def __init__(self, subject: Subject, call: MethodCall, asked: Mapping[str, Any]) -> None:
        self.subject, self.call, self.asked = subject, call, asked
        self.works = False  # whether any text was explained: so what was asked can be answered
        self._explain = partial(explain, subject, watch=lambda step: None)
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
                (found,) = self._explain([example], None, **self.asked)
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
        found = self._explain(list(examples), self.call.method.name, **self.asked)
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
