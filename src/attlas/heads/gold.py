"""Texts with their gold labels, as questions about these."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from attlas.data import ReadData
from attlas.errors import UnknownNameError, UnsupportedModelError, UsageError
from attlas.models.asking.question import Question
from attlas.models.asking.resolve import find_label
from attlas.models.asking.scores import run_logits
from attlas.models.encoding.request import Request
from attlas.models.encoding.target import Target
from attlas.models.subject import Subject
from attlas.models.tap.edits import Edit
from attlas.shapes import BatchScores

TASKS = ("sequence classification", "causal lm", "masked lm")
Labelled = tuple[Any, Any]  # a text and its label


@dataclass(frozen=True, eq=False)
class Gold:
    """Questions whose targets are the gold labels, and why other texts could not be asked about."""

    subject: Subject
    questions: tuple[Question, ...]
    left_out: Mapping[str, int]

    def __len__(self) -> int:
        return sum(map(len, self.questions))

    def notes(self) -> tuple[str, ...]:
        """What a reader must know of the texts."""
        return tuple(f"{count} left out: {reason}" for reason, count in self.left_out.items())


def ask_gold(subject: Subject, data: ReadData, *, truncate: bool = False) -> Gold:
    """Ask about the gold label of each text; texts that the model cannot take are counted."""
    _check_model(subject)
    asked: list[Labelled] = []
    left_out = Counter(each.reason for each in data.left_out)
    problem: UsageError | None = None
    for each in data.examples:
        try:
            label = _checked(subject, each.text, each.label, truncate)
            asked.append((each.text, label))
        except UnknownNameError as unknown:
            left_out["the model does not know the label"] += 1
            problem = unknown
        except UsageError as refused:
            left_out[" ".join(str(refused).split())] += 1
            problem = refused
    if not asked:
        raise problem or UsageError("there is no text to ask about")
    ask = _about_labels if _classifies(subject) else _about_tokens
    return Gold(subject, tuple(ask(subject, asked, truncate)), left_out)


def _about_labels(
    subject: Subject, asked: Sequence[Labelled], truncate: bool
) -> Iterator[Question]:
    """Texts of all labels together."""
    for question in subject.ask([text for text, _ in asked], Request(truncate=truncate)):
        labels = [asked[place][1] for place in question.order]
        targets = tuple(
            Target(subject.labels[label], ((-1, label),), subject.link) for label in labels
        )
        yield replace(question, targets=targets, known_scores=())


def _about_tokens(
    subject: Subject, asked: Sequence[Labelled], truncate: bool
) -> Iterator[Question]:
    """Texts of each label by themselves: where a token is read is found out by asking for it."""
    groups: dict[Any, list[Any]] = {}
    for text, label in asked:
        groups.setdefault(label, []).append(text)
    for label, texts in groups.items():
        yield from subject.ask(texts, Request(target=label, truncate=truncate))


def _classifies(subject: Subject) -> bool:
    return subject.task is not None and subject.task.name == TASKS[0]


def _check_model(subject: Subject) -> None:
    name = subject.task.name if subject.task else "no head"
    if name not in TASKS or subject.link == "identity":
        raise UnsupportedModelError(
            f"heads are ranked by how a model answers: it must choose a label or a token, and "
            f"{subject.name} ({name}) does not"
        )


def _checked(subject: Subject, text: Any, label: Any, truncate: bool) -> Any:
    """The label as the model has it; an error where the model cannot be asked about the text."""
    wanted = find_label(subject.labels, label) if _classifies(subject) else label
    inputs = subject.encode(text, Request(target=wanted, truncate=truncate))
    if inputs.chains and len(inputs.chains[0]) > 1:
        raise UsageError("the label is more than one token")
    return wanted


@dataclass(frozen=True)
class Rightness(Target):
    """Whether the model chooses this target: 1 or 0, in place of a probability."""

    def score(self, logits: Tensor, of: str) -> Tensor:
        """The number for each row of outputs, `[…, place, choice]`."""
        places, choices = zip(*self.picks, strict=True)
        chosen = logits[..., list(places), :].argmax(dim=-1)
        wanted = torch.tensor(choices, device=logits.device)
        return (chosen == wanted).all(dim=-1).float()


def about_rightness(question: Question) -> Question:
    """The same question, of whether the model is right."""
    return replace(question, targets=tuple(Rightness(**vars(each)) for each in question.targets))


def are_right(question: Question, edits: Sequence[Edit] = ()) -> BatchScores:
    """Which rows the model answers with their target, as 1 and 0, with the attention so edited."""
    with torch.no_grad(), question.subject.tap(edits, sites=()):
        logits = run_logits(question)
    picks = torch.tensor([target.picks for target in question.targets], device=logits.device)
    rows = torch.arange(len(logits), device=logits.device)[:, None]
    chosen = logits[rows, picks[..., 0]].argmax(dim=-1)
    return (chosen == picks[..., 1]).all(dim=-1).float()
