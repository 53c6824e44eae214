"""Texts with their gold labels, as questions about these labels."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from attlas.data import ReadData
from attlas.errors import UnknownNameError, UnsupportedModelError, UsageError
from attlas.models.asking.question import Question
from attlas.models.asking.resolve import find_label
from attlas.models.encoding.request import Request
from attlas.models.encoding.target import Target
from attlas.models.subject import Subject

TASKS = ("sequence classification", "causal lm", "masked lm")
LabelledText = tuple[Any, Any]  # a text and its label


@dataclass(frozen=True, eq=False)
class LabelledQuestions:
    """Questions whose targets are the gold labels; `left_out` counts the other texts by reason."""

    subject: Subject
    questions: tuple[Question, ...]
    left_out: Mapping[str, int]
    labelled: tuple[tuple[LabelledText, ...], ...]  # the rows of each question

    def __len__(self) -> int:
        return sum(map(len, self.questions))

    def notes(self) -> tuple[str, ...]:
        """How many texts were left out, and why."""
        return tuple(f"{count} left out: {reason}" for reason, count in self.left_out.items())


def ask_about_labels(
    subject: Subject, data: ReadData, *, truncate: bool = False
) -> LabelledQuestions:
    """Ask about the gold label of each text; texts that the model cannot take are counted."""
    _check_model(subject)
    accepted: list[LabelledText] = []
    left_out = Counter(each.reason for each in data.left_out)
    problem: UsageError | None = None
    for each in data.examples:
        try:
            label = _known_label(subject, each.text, each.label, truncate)
            accepted.append((each.text, label))
        except UnknownNameError as unknown:
            left_out["the model does not know the label"] += 1
            problem = unknown
        except UsageError as refused:
            left_out[" ".join(str(refused).split())] += 1
            problem = refused
    if not accepted:
        raise problem or UsageError("there is no text to ask about")
    questions, rows = zip(*ask_labelled(subject, accepted, truncate), strict=True)
    return LabelledQuestions(subject, questions, left_out, rows)


def ask_labelled(
    subject: Subject, labelled: Sequence[LabelledText], truncate: bool
) -> Iterator[tuple[Question, tuple[LabelledText, ...]]]:
    """Questions about labels that the model knows, each with the texts that are its rows."""
    ask = _ask_classifier if _classifies(subject) else _ask_for_tokens
    return ask(subject, labelled, truncate)


def _ask_classifier(
    subject: Subject, labelled: Sequence[LabelledText], truncate: bool
) -> Iterator[tuple[Question, tuple[LabelledText, ...]]]:
    """Questions about texts of all labels together."""
    for question in subject.ask([text for text, _ in labelled], Request(truncate=truncate)):
        rows = tuple(labelled[place] for place in question.order)
        targets = tuple(
            Target(subject.labels[label], ((-1, label),), subject.link) for _, label in rows
        )
        yield question.asking(targets), rows


def _ask_for_tokens(
    subject: Subject, labelled: Sequence[LabelledText], truncate: bool
) -> Iterator[tuple[Question, tuple[LabelledText, ...]]]:
    """Questions about the texts of each label apart: the label decides where the model is read."""
    groups: dict[Any, list[Any]] = {}
    for text, label in labelled:
        groups.setdefault(label, []).append(text)
    for label, texts in groups.items():
        for question in subject.ask(texts, Request(target=label, truncate=truncate)):
            yield question, tuple((texts[place], label) for place in question.order)


def _classifies(subject: Subject) -> bool:
    return subject.task is not None and subject.task.name == TASKS[0]


def _check_model(subject: Subject) -> None:
    name = subject.task.name if subject.task else "no head"
    if name not in TASKS or subject.link == "identity":
        raise UnsupportedModelError(
            f"heads are ranked by how a model answers: it must choose a label or a token, and "
            f"{subject.name} ({name}) does not"
        )


def _known_label(subject: Subject, text: Any, label: Any, truncate: bool) -> Any:
    """The label as the model has it; an error if the model cannot be asked about the text."""
    known = find_label(subject.labels, label) if _classifies(subject) else label
    inputs = subject.encode(text, Request(target=known, truncate=truncate))
    if inputs.chains and len(inputs.chains[0]) > 1:
        raise UsageError("the label is more than one token")
    return known
