"""The verb `explain`: a method asked about a text, or about many, in the caller's order."""

from collections.abc import Iterator, Mapping, Sequence
from importlib.metadata import version
from typing import Any

import torch

from attlas.errors import ModelError, UsageError
from attlas.methods import METHODS, Method, Scored
from attlas.models.memory import in_parts
from attlas.models.question import Question
from attlas.models.resolve import Request
from attlas.models.subject import Subject, maps_of
from attlas.models.target import Target
from attlas.models.wanted import is_number
from attlas.results import Explanation, TargetRecord
from attlas.results.explanation import Origin

DEFAULT_METHOD = "gradient_attention"


def explain(
    subject: Subject,
    text: Any,
    method: str = DEFAULT_METHOD,
    target: Any = None,
    *,
    contrast: Any = None,
    position: int | None = None,
    prefix: str | None = None,
    chat: bool = False,
    truncate: bool = False,
    **options: Any,
) -> Any:
    """Explain what the model makes of a text: a score for each token.

    A text is a string, a pair (a tuple of two strings), a list of token ids or, for a vision model,
    a picture. A list of texts gives a list of explanations in the same order; in it, a list of
    strings is one text given as words. `target` is a class, a label, a token or a string of them,
    and the model's own prediction if it is None; `contrast` is what to explain it against.
    `options` are the method's own.
    """
    if not isinstance(subject, Subject):
        raise UsageError(f"explain takes a Subject (attlas.load), not {type(subject).__name__}")
    chosen = METHODS[method]
    wanted = Target.from_dict(target) if isinstance(target, Mapping) else target
    request = Request(wanted, contrast, position, prefix, chat, truncate)
    texts = [text] if is_one_text(text) else text
    found = _explain_all(subject, texts, chosen, request, options)
    return found if texts is text else found[0]


attribute = explain


def is_one_text(text: Any) -> bool:
    """Whether this is one text; a list of anything but numbers is many."""
    if not isinstance(text, list):
        return True
    return bool(text) and all(isinstance(each, int) for each in text)


def _explain_all(
    subject: Subject,
    texts: Sequence[Any],
    method: Method,
    request: Request,
    options: Mapping[str, Any],
) -> list[Explanation]:
    with torch.inference_mode(False):  # gradients are needed, whatever the caller has switched off
        found = dict(_explain_each(subject, texts, method, request, options))
    return [found[index] for index in range(len(texts))]


def _explain_each(
    subject: Subject,
    texts: Sequence[Any],
    method: Method,
    request: Request,
    options: Mapping[str, Any],
) -> Iterator[tuple[int, Explanation]]:
    for question in subject.ask(texts, request):

        def score(rows: Sequence[int], whole: Question = question) -> tuple[Question, Scored]:
            part = whole.rows(rows)
            return part, method.score(part, options)

        parts = in_parts(range(len(question)), score, _too_large(method, question))
        for part, scored in parts:
            for row, index in enumerate(part.order):
                yield index, _record(method, part, scored, row, request, options)


def _too_large(method: Method, question: Question) -> str:
    count, device = len(question.inputs.tokens[0]), question.subject.device
    return (
        f"{method.name} of one text of {count} tokens does not fit on {device}; "
        "shorten the text, or load the model in half precision (dtype)"
    )


def _record(
    method: Method,
    question: Question,
    scored: Scored,
    row: int,
    request: Request,
    options: Mapping[str, Any],
) -> Explanation:
    inputs, subject = question.inputs, question.subject
    scores = scored.scores[row].detach().float().cpu().numpy()
    if not torch.isfinite(scored.scores[row]).all():
        raise ModelError(f"{method.name} gave scores that are not finite for {subject.name}")
    maps = maps_of(inputs, row, scored.maps, method.signed) if scored.maps else None
    return Explanation(
        inputs.tokens[row],
        scores,
        _target_record(question, row, method.of or "probability"),
        _origin(method, subject, inputs.texts[row], request, options),
        question.predictions[row],
        (*inputs.notes[row], *scored.notes),
        maps,
    )


def _target_record(question: Question, row: int, of: str) -> TargetRecord:
    target: Target = question.targets[row]
    return TargetRecord(
        target.name,
        target.quantity(of),
        question.found[row][of],
        target.contrast_name,
        target.position,
    )


def _origin(
    method: Method, subject: Subject, text: Any, request: Request, options: Mapping[str, Any]
) -> Origin:
    asked = {
        "text": _plain_text(text),
        "target": _plain(request.target),
        "contrast": _plain(request.contrast),
        "position": _plain(request.position),
        "prefix": request.prefix,
        "chat": request.chat or None,
        "truncate": request.truncate or None,
    }
    return Origin(
        model=subject.name,
        task=subject.task.name if subject.task else "",
        method=method.name,
        signed=method.signed,
        paper=method.paper,
        reading=method.reading,
        options={**method.options, **options},
        asked={name: value for name, value in asked.items() if value is not None},
        versions={name: version(name) for name in ("attlas", "torch", "transformers")},
    )


def _plain_text(text: Any) -> Any:
    """A text as it can be given again: words as a list of one text; of a picture, what it was."""
    if isinstance(text, list) and not is_one_text(text):
        return [text]
    return text if isinstance(text, (str, tuple, list)) else type(text).__name__


def _plain(wanted: Any) -> Any:
    """What was asked for, as JSON that can be asked for again."""
    if isinstance(wanted, Target):
        return wanted.to_dict()
    return int(wanted) if is_number(wanted) else wanted


def list_methods() -> list[str]:
    """The names of all methods."""
    return METHODS.names()
