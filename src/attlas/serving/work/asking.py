"""From a request to a model's question: the input as Attlas takes it, and what is asked of it."""

import base64
import binascii
import io
from dataclasses import dataclass
from functools import lru_cache
from math import exp
from typing import Any

from PIL import Image

from attlas.errors import UsageError
from attlas.models.asking.question import Question
from attlas.models.encoding.request import Request
from attlas.models.subject import Subject
from attlas.serving.requests import Asking, Given

MOST_PIXELS = 4096 * 4096
MOST_KNOWN = 64  # questions that are kept with their answers


@dataclass(frozen=True, eq=False)
class PosedInput:
    """A model, the input as it takes it, and what is asked."""

    subject: Subject
    text: Any
    request: Request

    @property
    def arguments(self) -> dict[str, Any]:
        """The arguments that `explain` takes."""
        known = {"target": self.request.target, "position": self.request.position}
        return known | {"prefix": self.request.prefix}

    def question(self) -> Question:
        """The question, with its target and the model's prediction."""
        parts = self.text if isinstance(self.text, tuple) else (self.text,)
        if all(isinstance(each, str) for each in parts):
            return _known_question(self.subject, self.text, self.request)
        return _asked_question(self.subject, self.text, self.request)


def _asked_question(subject: Subject, text: Any, request: Request) -> Question:
    (question,) = subject.ask([text], request)
    return question


# Who changes edits asks about the same text again and again; the model was left unchanged.
_known_question = lru_cache(maxsize=MOST_KNOWN)(_asked_question)


def asked_of(subject: Subject, asking: Asking) -> PosedInput:
    """What a request asks of a model."""
    text = input_of(asking.input)
    request = Request(asking.target, None, asking.position, asking.input.prefix)
    if subject.task is None and isinstance(text, tuple):
        subject = subject.comparing()
    return PosedInput(subject, text, request)


def score_of(question: Question) -> float:
    """The probability of the target, or its value if the model gives one."""
    (scores,), (target,) = question.known_scores, question.targets
    return exp(scores["probability"]) if target.chained else scores["probability"]


def input_of(given: Given) -> Any:
    """An input as `explain` takes it."""
    if given.picture is not None:
        picture = _picture(given.picture)
        return picture if given.text is None else (picture, given.text)
    return given.text if given.pair is None else (given.text, given.pair)


def _picture(coded: str) -> Image.Image:
    """A picture from its bytes; only two formats are read, and no large one is unpacked."""
    try:
        content = base64.b64decode(coded.rpartition(",")[2], validate=True)
        opened = Image.open(io.BytesIO(content), formats=["PNG", "JPEG"])
        if opened.width * opened.height > MOST_PIXELS:
            raise UsageError(f"a picture has at most {MOST_PIXELS:,} pixels")
        return opened.convert("RGB")
    except (binascii.Error, OSError, ValueError, SyntaxError, Image.DecompressionBombError) as bad:
        if isinstance(bad, UsageError):
            raise
        raise UsageError("the picture cannot be read: give PNG or JPEG in base64") from bad
