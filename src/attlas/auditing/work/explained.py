"""The scores of each method and each control on a batch of texts."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from attlas.auditing.plan import AuditPlan
from attlas.auditing.verdict.crossing import OTHER
from attlas.auditing.work.drafts import Drafts, Scores
from attlas.errors import AttlasError
from attlas.judging.support.marking import marked_tokens
from attlas.measures import PAIRS, Case
from attlas.measures.support.recomputing import Recipe
from attlas.methods import METHODS
from attlas.models.asking.filling import fill
from attlas.models.asking.question import Question
from attlas.progress import Tell, silent
from attlas.removing.removal import removable
from attlas.shapes import TokenMarks, TokenVector

SHUFFLED, CEILING = "shuffled", "ceiling"
POSITION, FREQUENCY = "position", "frequency"
WEIGHTS = ("raw_attention", "attention_rollout", "effective_attention")  # the verdict is on these
FROM_MASK, FROM_ZERO = (f"integrated_gradients from {baseline}" for baseline in ("mask", "zero"))
# A reference has to order tokens, and errors do not add up as the tolerance supposes.
_ROUGHLY = {"tolerance": 0.2, "most": 60}
REFERENCES: Mapping[str, Recipe] = {
    "gradient": Recipe(METHODS["gradient"], {}),
    "input_x_gradient": Recipe(METHODS["input_x_gradient"], {}),
    FROM_MASK: Recipe(METHODS["integrated_gradients"], {"baseline": "mask", **_ROUGHLY}),
    FROM_ZERO: Recipe(METHODS["integrated_gradients"], {"baseline": "zero", **_ROUGHLY}),
}
# What is computed from the token that a removal puts in is not judged by that removal.
CIRCULAR = frozenset({(FROM_MASK, "mask"), (FROM_ZERO, "zero_embedding")})
LENT = "raw_attention"  # the method whose scores each text lends to another
CONTROLS = {
    SHUFFLED: "the scores at other tokens of the same text",
    OTHER: f"{LENT} of another text of about the same length",
    POSITION: "the first tokens first",
    FREQUENCY: "the tokens that are rarest in the data first",
    "random_scores": "random numbers",
}


@dataclass(frozen=True, eq=False)
class ExplainedText:
    """A text with the scores that measures are applied to."""

    number: int  # among all texts of the audit
    index: int  # in the batch
    question: Question  # of one row
    content: Sequence[int]
    seed: int
    marks: TokenMarks | None  # which content tokens people marked, if the data say so
    in_sample: bool  # whether expensive work is done on it
    scores: Mapping[str, TokenVector] = field(default_factory=dict)  # by method or control
    verdict: Mapping[str, TokenVector] = field(default_factory=dict)  # the verdict's own methods
    pairs: int = PAIRS  # of random orders of removal
    _shuffles: dict[tuple[int, str | None], list[Case]] = field(
        default_factory=dict, init=False, repr=False
    )

    @cached_property
    def cases(self) -> dict[str, Case]:
        """The scores in the form that measures take."""
        return {
            name: self._case(scores, name in CONTROLS or METHODS[name].takes_sides)
            for name, scores in self.scores.items()
        }

    def shuffles(self, count: int, name: str | None = None) -> list[Case]:
        """This many random orders of the tokens, or shuffles of the scores of a method."""
        if (count, name) not in self._shuffles:
            random = np.random.default_rng([self.seed, crc32(SHUFFLED.encode())])
            own = None if name is None else self.scores[name]
            start = np.arange(float(len(self.content))) if own is None else np.sort(own)
            drawn = [self._case(random.permutation(start)) for _ in range(count)]
            self._shuffles[count, name] = drawn
        return self._shuffles[count, name]

    def _case(self, scores: TokenVector, signed: bool = True) -> Case:
        return Case(scores, self.seed, self.marks, signed, self.pairs)


@dataclass(frozen=True, eq=False)
class Explained:
    """A batch of texts with their scores, and why some methods gave none."""

    texts: Sequence[ExplainedText]
    questions: Sequence[Question]
    refused: Mapping[str, str]  # reasons by method


def explain_batch(
    plan: AuditPlan, numbers: Sequence[int], drafts: Drafts, tell: Tell = silent
) -> Explained:
    """Explain the texts with these numbers by every method, and add the controls."""
    questions = plan.texts.ask(numbers)
    texts = {each.index: each for each in _texts(plan, numbers, questions)}
    scores: dict[int, dict[str, TokenVector]] = {index: {} for index in texts}
    filled = fill(questions)
    refused = {}
    for name in plan.settings.methods:
        tell(name)
        try:
            asked = filled if METHODS[name].fills else questions
            for place, question in enumerate(asked):
                ask = partial(_scores, name, question, numbers, plan)
                for index, own in drafts.scores(name, place, ask):
                    scores[index][name] = own
        except AttlasError as problem:
            refused[name] = " ".join(str(problem).split())
    tell("the verdict's own methods")
    held = {index: _controls(texts[index], plan) for index in texts}
    for name, recipe in _VERDICT.items():
        try:
            known = {index: own[name] for index, own in scores.items() if name in own}
            found = known if len(known) == len(texts) else _all(recipe, questions)
            for index, own in found.items():
                held[index][name] = own
        except AttlasError as problem:
            refused.setdefault(name, " ".join(str(problem).split()))
    _lend(held)
    for index, own_scores in scores.items():
        own_scores.update({name: held[index][name] for name in CONTROLS if name in held[index]})
    return Explained(
        [
            replace(texts[index], scores=scores[index], verdict=held[index])
            for index in sorted(texts)
        ],
        questions,
        refused,
    )


_VERDICT = {**{name: Recipe(METHODS[name], {}) for name in WEIGHTS}, **REFERENCES}


def verdict_recipes(asked: Collection[str]) -> list[Recipe]:
    """The verdict's own methods that are not asked for anyway."""
    return [recipe for name, recipe in _VERDICT.items() if name not in asked]


def _all(recipe: Recipe, questions: Sequence[Question]) -> dict[int, TokenVector]:
    """The scores of all texts; an error if the method warns of those of any text."""
    asked = recipe.fill(questions)
    return {index: own for question in asked for index, own in recipe.reliable_scores(question)}


def _texts(
    plan: AuditPlan, numbers: Sequence[int], questions: Sequence[Question]
) -> Iterator[ExplainedText]:
    for question in questions:
        for row, index in enumerate(question.order):
            number, content = numbers[index], removable(question, row)
            example, tokens = plan.texts.examples[number], question.inputs.tokens[row]
            yield ExplainedText(
                number,
                index,
                question.rows([row]),
                content,
                case_seed(plan.settings.seed, number),
                marked_tokens(example, tokens, content),
                int(plan.texts.ranks[number]) < plan.settings.texts_for_expensive,
                pairs=plan.settings.pairs,
            )


def case_seed(seed: int, number: int) -> int:
    """What decides all that is drawn for one text of an audit."""
    return int(np.random.default_rng([seed, number, crc32(b"case")]).integers(2**32))


def _scores(name: str, question: Question, numbers: Sequence[int], plan: AuditPlan) -> Scores:
    """The scores of one method on those of the texts that it explains."""
    rows = [
        row
        for row, index in enumerate(question.order)
        if METHODS[name] in plan.settings.methods_on(int(plan.texts.ranks[numbers[index]]))
    ]
    recipe = Recipe(METHODS[name], {})
    return list(recipe.content_scores(question.rows(rows))) if rows else []


def _controls(text: ExplainedText, plan: AuditPlan) -> dict[str, TokenVector]:
    """Scores made from the text alone, without the model."""
    inputs = text.question.inputs
    ids = inputs.arguments[inputs.source.argument]
    # Sizes must fall as the order does: where a score stands, its sign does not count.
    controls = {POSITION: np.arange(float(len(text.content)), 0, -1)}
    if ids.ndim == 2 and len(inputs.streams()) == 1:
        own = ids[0].tolist()
        counts = [plan.texts.counts[own[place]] for place in text.content]
        controls[FREQUENCY] = 1 / np.array(counts, dtype=np.float64)
    return controls


def _lend(scores: Mapping[int, dict[str, TokenVector]]) -> None:
    """Give each text the scores of the weights on another text, the next one in length.

    They are stretched to the length of the text, so that each token gets the score of its place.
    """
    order = sorted(scores, key=lambda index: len(scores[index][POSITION]))
    for name in WEIGHTS:
        known = [index for index in order if name in scores[index]]
        lent = {
            index: _stretched(scores[other][name], len(scores[index][POSITION]))
            for index, other in zip(known, [*known[1:], *known[:1]], strict=True)
            if index != other
        }
        for index, own in lent.items():
            scores[index][f"{OTHER} {name}"] = own
            if name == LENT:
                scores[index][OTHER] = own


def _stretched(scores: NDArray[np.float64], count: int) -> NDArray[np.float64]:
    """The scores at as many places, evenly spread."""
    places = (np.arange(count) + 0.5) * len(scores) / count - 0.5
    return np.asarray(np.interp(places, np.arange(len(scores)), scores), dtype=np.float64)
