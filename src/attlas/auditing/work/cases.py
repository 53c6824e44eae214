"""What is judged on each text of a part: the methods' scores, and controls that know no model."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any
from zlib import crc32

import numpy as np

from attlas.auditing.settings import Settings
from attlas.auditing.texts import Texts
from attlas.errors import AttlasError
from attlas.judging.marking import marked_tokens
from attlas.measures import Case
from attlas.measures.support.recomputing import Recipe
from attlas.methods import METHODS
from attlas.models.asking.filling import fill
from attlas.models.asking.question import Question
from attlas.progress import Tell, silent
from attlas.removing.removal import removable
from attlas.shapes import TokenMarks, TokenVector

SHUFFLED, CEILING = "shuffled", "ceiling"
OTHER, POSITION, FREQUENCY = "other_text", "position", "frequency"
BORROWED = "raw_attention"  # the method whose scores of another text are tried
CONTROLS = {
    SHUFFLED: "the scores at other tokens of the same text",
    OTHER: f"{BORROWED} of another text with as many tokens",
    POSITION: "the first tokens first",
    FREQUENCY: "the tokens that are rarest in the data first",
    "random_scores": "random numbers",
}


@dataclass(frozen=True, eq=False)
class Judged:
    """A text of a part: its number among all, its tokens, and the scores to be judged."""

    number: int
    local: int  # among those of the part
    question: Question  # of one row
    content: Sequence[int]
    seed: int
    marks: TokenMarks | None  # which content tokens are marked, where the data say so
    drawn: bool  # whether it is among those that dear work is done on
    scores: Mapping[str, TokenVector] = field(default_factory=dict)  # by method
    _shuffles: dict[Any, list[Case]] = field(default_factory=dict, init=False, repr=False)

    @cached_property
    def cases(self) -> dict[str, Case]:
        """The scores of each method as a measure takes them."""
        return {name: self._as_case(scores) for name, scores in self.scores.items()}

    def shuffles(self, count: int, name: str | None = None) -> list[Case]:
        """So many orders drawn at random, or the scores of a method put at random tokens."""
        if (count, name) not in self._shuffles:
            random = np.random.default_rng([self.seed, crc32(SHUFFLED.encode())])
            own = None if name is None else self.scores[name]
            start = np.arange(float(len(self.content))) if own is None else np.sort(own)
            drawn = [self._as_case(random.permutation(start)) for _ in range(count)]
            self._shuffles[count, name] = drawn
        return self._shuffles[count, name]

    def _as_case(self, scores: TokenVector) -> Case:
        return Case(scores, self.seed, self.marks)


@dataclass(frozen=True, eq=False)
class Explained:
    """The texts of a part with their scores, and why some methods gave none."""

    texts: Sequence[Judged]
    questions: Sequence[Question]
    refused: Mapping[str, str]


def explain_part(
    texts: Texts,
    numbers: Sequence[int],
    settings: Settings,
    refused: Mapping[str, str],
    tell: Tell = silent,
) -> Explained:
    """The scores of every method for the texts with these numbers."""
    questions = texts.ask(numbers)
    judged = {each.local: each for each in _judged(texts, numbers, questions, settings)}
    found: dict[int, dict[str, TokenVector]] = {local: {} for local in judged}
    together = fill(questions)
    reasons = dict(refused)
    for name in settings.methods:
        if name in reasons:
            continue
        tell(name)
        try:
            asked = together if METHODS[name].fills else questions
            for local, scores in _scores(name, asked, numbers, texts, settings):
                found[local][name] = scores
        except AttlasError as problem:
            reasons[name] = " ".join(str(problem).split())
            found = {local: _without(own, name) for local, own in found.items()}
    drawn = {local: own for local, own in found.items() if judged[local].drawn}
    for local, own in drawn.items():
        own.update(_controls(judged[local], texts))
    _exchange(judged, drawn)
    complete = [replace(judged[local], scores=found[local]) for local in sorted(judged)]
    return Explained(complete, questions, reasons)


def _without(scores: Mapping[str, TokenVector], name: str) -> dict[str, TokenVector]:
    return {key: value for key, value in scores.items() if key != name}


def _judged(
    texts: Texts, numbers: Sequence[int], questions: Sequence[Question], settings: Settings
) -> Iterator[Judged]:
    for question in questions:
        for row, local in enumerate(question.order):
            number, content = numbers[local], removable(question, row)
            seed = np.random.default_rng([settings.seed, number, crc32(b"case")])
            marks = marked_tokens(texts.examples[number], question.inputs.tokens[row], content)
            yield Judged(
                number,
                local,
                question.rows([row]),
                content,
                int(seed.integers(2**32)),
                marks,
                int(texts.ranks[number]) < settings.some,
            )


def _scores(
    name: str,
    questions: Sequence[Question],
    numbers: Sequence[int],
    texts: Texts,
    settings: Settings,
) -> Iterator[tuple[int, TokenVector]]:
    """The scores of one method for those of the texts that it is asked of."""
    recipe = Recipe(METHODS[name], {})
    for question in questions:
        rows = [
            row
            for row, local in enumerate(question.order)
            if METHODS[name] in settings.methods_on(int(texts.ranks[numbers[local]]))
        ]
        if rows:
            yield from recipe.content_scores(question.rows(rows))


def _controls(judged: Judged, texts: Texts) -> dict[str, TokenVector]:
    """Scores that know the text, but not what the model makes of it."""
    inputs = judged.question.inputs
    ids = inputs.arguments[inputs.source.argument]
    found = {POSITION: -np.arange(float(len(judged.content)))}
    if ids.ndim == 2 and len(inputs.streams()) == 1:
        counts = [texts.counts[int(ids[0, place])] for place in judged.content]
        found[FREQUENCY] = -np.array(counts, dtype=np.float64)
    return found


def _exchange(judged: Mapping[int, Judged], found: Mapping[int, dict[str, TokenVector]]) -> None:
    """Give each text the scores of another that has as many tokens, where there is one."""
    alike: dict[int, list[int]] = {}
    for local, own in found.items():
        if BORROWED in own:
            alike.setdefault(len(judged[local].content), []).append(local)
    for group in alike.values():
        if len(group) > 1:
            for local, other in zip(group, [*group[1:], group[0]], strict=True):
                found[local][OTHER] = found[other][BORROWED]
