"""From what is given to be judged to the scores of the tokens that the model reads."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any
from zlib import crc32

import numpy as np
import torch
import transformers
from numpy.typing import NDArray

from attlas.data.example import Example
from attlas.errors import UsageError
from attlas.judging.aligning import join_pieces, put_on_tokens
from attlas.judging.foreign import Given, read
from attlas.judging.marking import marked_tokens
from attlas.measures import Case, Occasion
from attlas.measures.support.recomputing import request_of
from attlas.methods import METHODS
from attlas.models.asking.open_model import OpenModel
from attlas.models.asking.question import Question
from attlas.models.encoding.request import Request
from attlas.removing.removal import removable
from attlas.results import Explanation, Origin, TargetRecord
from attlas.shapes import TokenVector
from attlas.version import __version__


@dataclass(frozen=True, eq=False)
class Wanted:
    """One explanation to be judged, and what the model is to be asked for it."""

    given: Explanation | Given
    text: Any
    request: Request
    marks: Any = None


@dataclass(frozen=True, eq=False)
class Trial:
    """An explanation on the tokens of a question, ready to be judged."""

    question: Question  # of one row
    number: int  # of its text, among those that are asked together
    explanation: Explanation
    case: Case
    text: Any
    seed: int
    example: Example | None = None

    @property
    def can_compute_again(self) -> bool:
        """Whether the explanation is one of ours, as the method gave it."""
        origin = self.explanation.origin
        return origin.verb == "explain" and not origin.part and origin.method in METHODS.names()

    @property
    def occasion(self) -> Occasion:
        """For measures that ask the model in their own way."""
        return Occasion(
            self.question.subject, self.text, self.explanation, self.case.seed, self.example
        )

    def random(self, name: str) -> np.random.Generator:
        """What draws for one purpose: the same for a text whatever else is judged."""
        return np.random.default_rng([self.seed, text_key(self.text), crc32(name.encode())])


def text_key(text: Any) -> int:
    """A number that a text is known by; pictures are all alike."""
    known = text if isinstance(text, (str, tuple, list)) else type(text).__name__
    return crc32(repr(known).encode("utf-8", "surrogatepass"))


def wanted(subject: OpenModel, given: Any, text: Any, target: Any, marks: Any) -> Wanted:
    """What one explanation asks of the model."""
    if isinstance(given, Explanation):
        if given.origin.verb not in ("explain", "judge"):
            raise UsageError(
                f"judge takes what explain gives, not a part of what {given.origin.verb} gave"
            )
        known = _text_of(given) if text is None else text
        return Wanted(given, known, request_of(given.origin), marks)
    found = read(given)
    if text is None and found.joined and found.pieces is not None:
        text = join_pieces(found.pieces, _specials(subject))
    if text is None:
        raise UsageError("scores from elsewhere need the text that they are of: text=…")
    return Wanted(found, text, Request(target, **found.asked), marks)


def _text_of(explanation: Explanation) -> Any:
    text = explanation.origin.asked.get("text")
    if explanation.tokens.grid is not None or text is None:
        raise UsageError("an explanation of a picture does not hold it: give it again, text=…")
    is_words = isinstance(text, list) and len(text) == 1 and isinstance(text[0], list)
    return text[0] if is_words else text


def _specials(subject: OpenModel) -> list[str]:
    return list(getattr(subject.tokenizer, "all_special_tokens", ()))


def trial(wanted: Wanted, question: Question, number: int, seed: int) -> Trial:
    """What is judged, on the tokens of a question of one row."""
    explanation, scores = _on_tokens(wanted, question)
    content = removable(question, 0)
    marks = marked_tokens(wanted.marks, question.inputs.tokens[0], content)
    random = np.random.default_rng([seed, text_key(wanted.text), crc32(b"case")])
    case = Case(scores, int(random.integers(2**32)), marks)
    example = wanted.marks if isinstance(wanted.marks, Example) else None
    return Trial(question, number, explanation, case, wanted.text, seed, example)


def _on_tokens(wanted: Wanted, question: Question) -> tuple[Explanation, NDArray[np.float64]]:
    """The explanation, and the scores of the content tokens."""
    tokens, content = question.inputs.tokens[0], removable(question, 0)
    given = wanted.given
    if isinstance(given, Explanation):
        if given.tokens == tokens:
            return given, given.scores[content].astype(np.float64)
        pairs = zip(given.tokens.labels(), given.tokens.special, strict=True)
        pieces = tuple("" if special else label for label, special in pairs)
        elsewhere = Given(given.scores.astype(np.float64), pieces, given.method)
        scores = _content_scores(elsewhere, question)
        return replace(given, tokens=tokens, scores=_spread(scores, question), maps=None), scores
    scores = _content_scores(given, question)
    return _record(wanted, given.source, _spread(scores, question), question), scores


def _content_scores(given: Given, question: Question) -> NDArray[np.float64]:
    tokens, content = question.inputs.tokens[0], removable(question, 0)
    scores = given.scores if given.scores.ndim == 1 else _column(given, question)
    if given.pieces is not None:
        specials = _specials(question.subject)
        return put_on_tokens(tokens, content, given.pieces, scores, specials)
    if len(scores) not in (len(content), len(tokens)):
        raise UsageError(
            f"{len(scores)} scores for a text of {len(content)} content tokens ({len(tokens)} with "
            "special ones): one for each is needed"
        )
    return scores if len(scores) == len(content) else scores[content]


def _column(given: Given, question: Question) -> NDArray[np.float64]:
    """Of scores for each class, those of the target."""
    target, count = question.targets[0], given.scores.shape[1]
    choice = target.picks[0][1] if count > 1 else 0
    if len(target.picks) != 1 or choice >= count:
        raise UsageError(f"scores for {count} choices, and the target {target.name!r} is not one")
    return given.scores[:, choice]


def _spread(scores: NDArray[np.float64], question: Question) -> TokenVector:
    """Scores of content tokens over all tokens, zero on the others."""
    found = np.zeros(len(question.inputs.tokens[0]), dtype=np.float32)
    found[removable(question, 0)] = scores
    return found


def _record(wanted: Wanted, source: str, scores: TokenVector, question: Question) -> Explanation:
    """Scores from elsewhere as an Explanation."""
    subject, target = question.subject, question.targets[0]
    versions = {
        "attlas": __version__,
        "torch": torch.__version__,
        "transformers": transformers.__version__,
    }
    asked: dict[str, Any] = {"text": wanted.text if _is_plain(wanted.text) else "…"}
    if isinstance(wanted.request.target, (str, int)):
        asked["target"] = wanted.request.target
    return Explanation(
        question.inputs.tokens[0],
        scores,
        TargetRecord(
            target.name,
            target.quantity("probability"),
            question.found[0]["probability"],
            target.contrast_name,
            target.position,
        ),
        Origin(
            subject.name,
            subject.task.name if subject.task else "",
            source,
            signed=True,
            reading="Scores from elsewhere.",
            asked=asked,
            versions=versions,
            verb="judge",
        ),
        question.predictions[0],
        question.inputs.notes[0],
    )


def _is_plain(text: Any) -> bool:
    return isinstance(text, str) or (
        isinstance(text, Sequence) and all(isinstance(each, str) for each in text)
    )
