"""Curves of accuracy: tokens are removed by a method, a copy learns anew, and is tested."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from time import perf_counter
from typing import Any

import numpy as np
import torch
from torch import Tensor

from attlas.keeping import kept
from attlas.methods import METHODS
from attlas.models.asking.memory import in_fitting_batches
from attlas.models.asking.open_model import OpenModel
from attlas.models.asking.question import Question
from attlas.models.asking.scores import run_logits
from attlas.models.encoding.target import Target
from attlas.models.facts.evaluation_mode import evaluation_mode
from attlas.models.intervening.training import (
    TrainingPlan,
    answers_right,
    fresh_copy,
    labelled_batches,
    train,
)
from attlas.progress import Tell
from attlas.removing.operators import mask, mask_id
from attlas.removing.removal import removable
from attlas.shapes import Hidden, ShareTexts, TextValues, TokenMarks, TokenScores, TokenVector
from attlas.tokens import Tokens

RANDOM = "random_scores"
PLAIN, RECURSIVE = "plain", "recursive"
FORMS = {
    PLAIN: "the model's own explanations say what is removed, at every share",
    RECURSIVE: "each retrained model explains anew what is left, and says what goes next",
}


@dataclass(frozen=True, eq=False)
class LabelledTexts:
    """Questions about texts, and the number of the label of each text by its number."""

    questions: Sequence[Question]
    labels: Mapping[int, int]

    def __len__(self) -> int:
        return len(self.labels)


@dataclass(frozen=True, eq=False)
class Curves:
    """What one seed found: a row for each share, a column for each test text.

    `whole` and `masked` are of texts with all their tokens and with none of them.
    """

    whole: TextValues
    masked: TextValues
    random: ShareTexts
    methods: Mapping[tuple[str, str], ShareTexts]  # by form and method


@dataclass(frozen=True, eq=False)
class _Learner:
    """A copy that is trained when it is first asked for: what it says may be known already."""

    name: str
    make: Callable[[], OpenModel]

    @cached_property
    def model(self) -> OpenModel:
        return self.make()


@dataclass(eq=False)
class Relearning:
    """Removes tokens from training and test texts alike, trains copies and tests them.

    The model that is asked about is never trained.
    """

    training: LabelledTexts
    tested: LabelledTexts
    methods: Sequence[str]
    shares: Sequence[float]  # ascending
    forms: Sequence[str]
    plan: TrainingPlan
    seeds: int
    tell: Tell
    _done: int = 0
    _began: float = field(default_factory=perf_counter)
    _own: dict[str, list[Tensor]] = field(default_factory=dict)

    @property
    def trainings(self) -> int:
        """How many copies are trained in all: the first share is common to both forms."""
        return self.seeds * count_trainings(self.methods, self.shares, self.forms)

    @property
    def _questions(self) -> list[Question]:
        return [*self.training.questions, *self.tested.questions]

    def run(self, seed: int) -> Curves:
        """The curves of every method and form, all copies begun and trained by the same seed."""
        _, whole = self._learn([none_hidden(each) for each in self._questions], seed, "whole texts")
        _, masked = self._learn([all_hidden(each) for each in self._questions], seed, "empty texts")
        found = {
            (form, name): rows
            for name in self.methods
            for form, rows in self._curves(name, self._own_scores(name), self.forms, seed).items()
        }
        control = [_scores(each, RANDOM, {"seed": seed}) for each in self._questions]
        return Curves(whole, masked, self._curves(RANDOM, control, (PLAIN,), seed)[PLAIN], found)

    def _own_scores(self, method: str) -> list[Tensor]:
        """The scores of the user's own model for the whole texts; the same for every seed."""
        if method not in self._own:
            self.tell(f"{method}: explaining {len(self.training) + len(self.tested)} texts")
            self._own[method] = [_scores(each, method) for each in self._questions]
        return self._own[method]

    def _curves(
        self, method: str, scores: Sequence[Tensor], forms: Sequence[str], seed: int
    ) -> dict[str, ShareTexts]:
        nothing = [none_hidden(each) for each in self._questions]
        first = self._hide_more(nothing, scores, self.shares[0])
        learner, right = self._learn(first, seed, f"{method} {self.shares[0]:g}")
        found = {}
        for form in forms:
            hidden, asked, rows = first, learner, [right]
            for share in self.shares[1:]:
                named = self._ask_again(asked, hidden, method) if form == RECURSIVE else scores
                hidden = self._hide_more(hidden, named, share)
                asked, answered = self._learn(hidden, seed, f"{method} {share:g} {form}")
                rows.append(answered)
            found[form] = np.stack(rows)
        return found

    def _ask_again(
        self, learner: "_Learner", hidden: Sequence[Tensor], method: str
    ) -> list[Tensor]:
        """The scores of a retrained model for what is left of the texts."""
        left = [reduced(each, gone) for each, gone in zip(self._questions, hidden, strict=True)]

        def ask() -> list[Tensor]:
            return [_scores(replace(each, subject=learner.model), method) for each in left]

        return [torch.from_numpy(each).float() for each in kept(f"scores by {learner.name}", ask)]

    def _hide_more(
        self, hidden: Sequence[Tensor], scores: Sequence[Tensor], share: float
    ) -> list[Tensor]:
        each = zip(self._questions, hidden, scores, strict=True)
        return [hide_more(question, gone, values, share) for question, gone, values in each]

    def _learn(
        self, hidden: Sequence[Tensor], seed: int, what: str
    ) -> tuple["_Learner", TextValues]:
        """A copy that learns from the reduced training texts, and where it answers right."""
        texts = [reduced(each, gone) for each, gone in zip(self._questions, hidden, strict=True)]
        cut = len(self.training.questions)
        said = f"{what}: training {self._done + 1} of {self.trainings}{self._left()}"

        def make() -> OpenModel:
            learner = fresh_copy(texts[0].subject, self.plan.start, seed)
            lessons = labelled_batches(texts[:cut], self.training.labels)
            train(learner, lessons, self.plan, seed, lambda epoch: self.tell(f"{said}, {epoch}"))
            return learner

        learner = _Learner(f"{what} {seed}", make)
        asked = labelled_batches(texts[cut:], self.tested.labels)
        (right,) = kept(learner.name, lambda: [answers_right(learner.model, asked)])
        self._done += 1
        return learner, right

    def _left(self) -> str:
        """About how long the rest takes; unknown before the first training is done."""
        if not self._done:
            return ""
        seconds = (perf_counter() - self._began) / self._done * (self.trainings - self._done)
        return f", about {f'{seconds / 60:.0f} min' if seconds >= 90 else f'{seconds:.0f} s'} left"


def count_trainings(methods: Sequence[str], shares: Sequence[float], forms: Sequence[str]) -> int:
    """How many copies each seed trains."""
    steps = len(shares)
    return 2 + steps + len(methods) * (1 + len(forms) * (steps - 1))


def _scores(
    question: Question, method: str, options: Mapping[str, Any] | None = None
) -> TokenScores:
    """The scores that a method gives the tokens, each for what the model itself predicts."""
    part = METHODS[method]

    def score(rows: Sequence[int]) -> TokenScores:
        asked = _about_predictions(question.rows(rows))
        return part.score(asked, options or {}).scores.detach().float().cpu()

    large = f"{method} of one text of {len(question.inputs.tokens[0])} tokens"
    return torch.cat(list(in_fitting_batches(range(len(question)), score, large)))


def _about_predictions(question: Question) -> Question:
    """The question about the label that its model gives each text."""
    subject = question.subject
    with torch.no_grad(), evaluation_mode(subject.model):
        best = run_logits(question)[:, -1].argmax(dim=-1).tolist()
    targets = tuple(Target(subject.labels[label], ((-1, label),), subject.link) for label in best)
    return replace(question.asking(targets), maps=False)


def none_hidden(question: Question) -> Hidden:
    """Hide no token of any text."""
    return torch.zeros(len(question), len(question.inputs.tokens[0]), dtype=torch.bool)


def all_hidden(question: Question) -> Hidden:
    """Hide every content token."""
    hidden = none_hidden(question)
    for row in range(len(question)):
        hidden[row, removable(question, row)] = True
    return hidden


def reduced(question: Question, hidden: Hidden) -> Question:
    """The question with the hidden tokens masked; its tokens say so too.

    A masked token counts as a special one: it is not content any more.
    """
    if not hidden.any():
        return question
    subject = question.subject
    inputs = mask(question, question.inputs, hidden)
    shown = str(subject.tokenizer.convert_ids_to_tokens(mask_id(subject)))
    tokens = tuple(
        _masked(each, marks, shown)
        for each, marks in zip(inputs.tokens, hidden.tolist(), strict=True)
    )
    return question.about(replace(inputs, tokens=tokens))


def _masked(tokens: Tokens, marks: Sequence[bool], shown: str) -> Tokens:
    return replace(
        tokens,
        texts=tuple(
            shown if gone else text for gone, text in zip(marks, tokens.texts, strict=True)
        ),
        offsets=tuple(
            None if gone else span for gone, span in zip(marks, tokens.offsets, strict=True)
        ),
        special=tuple(gone or known for gone, known in zip(marks, tokens.special, strict=True)),
    )


def hide_more(question: Question, hidden: Hidden, scores: TokenScores, share: float) -> Hidden:
    """Hide the tokens of the largest scores, by size, until this share of the content is hidden.

    The question is of the whole texts; what is hidden already stays hidden.
    """
    more = hidden.clone()
    for row, values in enumerate(scores.detach().double().cpu().numpy()):
        content = removable(question, row)
        marks = chosen(np.abs(values[content]), hidden[row, content].numpy(), share)
        more[row, content] = torch.from_numpy(marks)
    return more


def chosen(sizes: TokenVector, gone: TokenMarks, share: float) -> TokenMarks:
    """The tokens that are gone, and the largest others up to this share of all: at least one.

    Halves are rounded up. Of equal sizes, the first is taken.
    """
    count = max(1, int(np.floor(share * len(sizes) + 0.5 + 1e-9))) if len(sizes) else 0
    order = np.argsort(np.where(gone, -np.inf, -sizes), kind="stable")
    marks = np.zeros(len(sizes), dtype=bool)
    marks[order[: max(count, int(gone.sum()))]] = True
    return marks
