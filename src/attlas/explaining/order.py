"""What is asked of every text, and how a result says so."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
import transformers

from attlas.errors import UsageError
from attlas.methods import METHODS, Method
from attlas.models.asking.question import Question
from attlas.models.encoding.request import Request
from attlas.models.encoding.target import Target
from attlas.models.encoding.token_ids import is_number
from attlas.models.facts.model_facts import ModelFacts
from attlas.models.subject import Subject
from attlas.results import TargetRecord
from attlas.results.support.origin import Origin
from attlas.version import __version__

DEFAULT_METHOD = "gradient_attention"


@dataclass(frozen=True)
class Order:
    """What is asked of every text: a method with its options, a target, maps or none."""

    method: Method
    request: Request
    options: Mapping[str, Any]
    maps: bool | None = None

    def __post_init__(self) -> None:
        name = self.method.name
        if self.request.contrast is not None and self.method.of is None:
            raise UsageError(f"{name} looks at no target, so a contrast cannot change its scores")
        if self.maps and self.method.maps is None and not self.options.get("full"):
            raise UsageError(f"{name} makes no maps, so there are none to hold")


def list_methods() -> list[str]:
    """The names of all methods."""
    return METHODS.names()


def check_subject(subject: Any, verb: str) -> None:
    """An error for anything that is no Subject."""
    if not isinstance(subject, Subject):
        raise UsageError(f"{verb} takes a Subject (attlas.load), not {type(subject).__name__}")


def too_large(method: Method, question: Question) -> str:
    """What to say where one text alone is too much for the memory."""
    count, device = len(question.inputs.tokens[0]), question.subject.device
    return (
        f"{method.name} of one text of {count} tokens does not fit on {device}; "
        "shorten the text, or load the model in half precision (dtype)"
    )


def target_record(question: Question, row: int, method: Method) -> TargetRecord:
    """What was explained of one row, as its result says it."""
    target, of = question.targets[row], method.of or "probability"
    return TargetRecord(
        target.name,
        target.quantity(of),
        question.found[row][of],
        target.contrast_name,
        target.position,
    )


def origin(order: Order, subject: ModelFacts, asked: Mapping[str, Any], verb: str) -> Origin:
    """How a result was made: all that is needed to make it again."""
    method, request = order.method, order.request
    given = {
        **asked,
        "target": _plain(request.target),
        "contrast": _plain(request.contrast),
        "position": _plain(request.position),
        "prefix": request.prefix,
        "chat": request.chat or None,
        "truncate": request.truncate or None,
        "maps": order.maps,
    }
    return Origin(
        model=subject.name,
        task=subject.task.name if subject.task else "",
        method=method.name,
        signed=method.signed,
        paper=method.paper,
        reading=method.reading,
        options={**method.options, **order.options},
        asked={name: value for name, value in given.items() if value is not None},
        versions={
            "attlas": __version__,
            "torch": torch.__version__,
            "transformers": transformers.__version__,
        },
        verb=verb,
    )


def _plain(wanted: Any) -> Any:
    """What was asked for, as JSON that can be asked for again."""
    if isinstance(wanted, Target):
        return wanted.to_dict()
    return int(wanted) if is_number(wanted) else wanted
