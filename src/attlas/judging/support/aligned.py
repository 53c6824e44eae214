"""Explanations to be judged, aligned with the tokens that the model reads."""

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
from attlas.explaining.licensing import text_key, text_seed
from attlas.judging.support.foreign import join_pieces, put_on_tokens
from attlas.judging.support.marking import marked_tokens
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
from attlas.views.elsewhere import ForeignScores, read_foreign


@dataclass(frozen=True, eq=False)
class JudgeRequest:
    """An explanation to be judged, and what the model is asked for it."""

    explanation: Explanation | ForeignScores
    text: Any
    request: Request
    marks: Any = None


@dataclass(frozen=True, eq=False)
class AlignedExplanation:
    """An explanation with a score for each token of a question, ready to be judged."""

    question: Question  # of one row
    number: int  # of its text, among those that are asked together
    explanation: Explanation
    case: Case
    text: Any
    seed: int
    example: Example | None = None

    @property
    def can_compute_again(self) -> bool:
        """Whether a method of Attlas gave the explanation, unchanged."""
        origin = self.explanation.origin
        return origin.verb == "explain" and not origin.part and origin.method in METHODS.names()

    @property
    def occasion(self) -> Occasion:
        """The explanation in the form that measures take which run the method again."""
        return Occasion(
            self.question.subject, self.text, self.explanation, self.case.seed, self.example
        )

    def random(self, name: str) -> np.random.Generator:
        """A generator for one purpose: the same for a text whatever else is judged."""
        return np.random.default_rng([self.seed, text_key(self.text), crc32(name.encode())])


def judge_request(
    subject: OpenModel, explanation: Any, text: Any, target: Any, marks: Any
) -> JudgeRequest:
    """Find the text of an explanation and what the model is asked about it."""
    if isinstance(explanation, Explanation):
        if explanation.origin.verb not in ("explain", "judge", "from_elsewhere"):
            verb = explanation.origin.verb
            raise UsageError(
                f"judge takes what explain returns, not a part of what {verb} returned"
            )
        known = _text_of(explanation) if text is None else text
        return JudgeRequest(explanation, known, request_of(explanation.origin), marks)
    scores = read_foreign(explanation)
    if text is None and scores.joined and scores.pieces is not None:
        text = join_pieces(scores.pieces, _specials(subject))
    if text is None:
        raise UsageError("scores that Attlas did not compute need their text: text=…")
    return JudgeRequest(scores, text, Request(target, **scores.request), marks)


def _text_of(explanation: Explanation) -> Any:
    text = explanation.origin.asked.get("text")
    if explanation.tokens.grids or text is None:
        raise UsageError("an explanation does not hold its picture: pass it again, text=…")
    is_words = isinstance(text, list) and len(text) == 1 and isinstance(text[0], list)
    return text[0] if is_words else text


def _specials(subject: OpenModel) -> list[str]:
    return list(getattr(subject.tokenizer, "all_special_tokens", ()))


def align(request: JudgeRequest, question: Question, number: int, seed: int) -> AlignedExplanation:
    """Align an explanation with the tokens of a question of one row."""
    explanation, scores = _on_tokens(request, question)
    content = removable(question, 0)
    marks = marked_tokens(request.marks, question.inputs.tokens[0], content)
    signed = explanation.origin.shows_sides
    case = Case(scores, text_seed(request.text, seed), marks, signed=signed)
    example = request.marks if isinstance(request.marks, Example) else None
    return AlignedExplanation(question, number, explanation, case, request.text, seed, example)


def _on_tokens(
    request: JudgeRequest, question: Question
) -> tuple[Explanation, NDArray[np.float64]]:
    """The explanation on the tokens of the question, and the scores of the content tokens."""
    tokens, content = question.inputs.tokens[0], removable(question, 0)
    explanation = request.explanation
    if isinstance(explanation, Explanation):
        if explanation.tokens == tokens:
            return explanation, explanation.scores[content].astype(np.float64)
        pairs = zip(explanation.tokens.labels(), explanation.tokens.special, strict=True)
        pieces = tuple("" if special else label for label, special in pairs)
        elsewhere = ForeignScores(explanation.scores.astype(np.float64), pieces, explanation.method)
        scores = _content_scores(elsewhere, question)
        spread = _spread(scores, question)
        changed = {"tokens": tokens, "scores": spread, "maps": None, "licence": None}
        return replace(explanation, **changed), scores  # type: ignore[arg-type]
    scores = _content_scores(explanation, question)
    return _record(request, explanation.source, _spread(scores, question), question), scores


def _content_scores(foreign: ForeignScores, question: Question) -> NDArray[np.float64]:
    tokens, content = question.inputs.tokens[0], removable(question, 0)
    scores = foreign.scores if foreign.scores.ndim == 1 else _column(foreign, question)
    if foreign.pieces is not None:
        specials = _specials(question.subject)
        return put_on_tokens(tokens, content, foreign.pieces, scores, specials)
    if len(scores) not in (len(content), len(tokens)):
        raise UsageError(
            f"{len(scores)} scores for a text of {len(content)} content tokens ({len(tokens)} with "
            "special ones): each token needs one score"
        )
    return scores if len(scores) == len(content) else scores[content]


def _column(foreign: ForeignScores, question: Question) -> NDArray[np.float64]:
    """The scores of the target, from scores of each class."""
    target, count = question.targets[0], foreign.scores.shape[1]
    choice = target.picks[0][1] if count > 1 else 0
    if len(target.picks) != 1 or choice >= count:
        raise UsageError(
            f"scores for {count} choices, and the target {target.name!r} is none of them"
        )
    return foreign.scores[:, choice]


def _spread(scores: NDArray[np.float64], question: Question) -> TokenVector:
    """Scores of all tokens from those of content tokens; zero for the others."""
    spread = np.zeros(len(question.inputs.tokens[0]), dtype=np.float32)
    spread[removable(question, 0)] = scores
    return spread


def _record(
    request: JudgeRequest, source: str, scores: TokenVector, question: Question
) -> Explanation:
    """Scores that Attlas did not compute, as an Explanation."""
    subject, target = question.subject, question.targets[0]
    versions = {
        "attlas": __version__,
        "torch": torch.__version__,
        "transformers": transformers.__version__,
    }
    asked: dict[str, Any] = {"text": request.text if _is_plain(request.text) else "…"}
    if isinstance(request.request.target, (str, int)):
        asked["target"] = request.request.target
    return Explanation(
        question.inputs.tokens[0],
        scores,
        TargetRecord(
            target.name,
            target.quantity("probability"),
            question.known_scores[0]["probability"],
            target.contrast_name,
            target.position,
        ),
        Origin(
            subject.name,
            subject.task.name if subject.task else "",
            source,
            signed=bool((scores < 0).any()),
            reading="Scores from elsewhere.",
            asked=asked,
            versions=versions,
            verb="judge",
        ),
        question.predictions[0],
        question.notes(0),
    )


def _is_plain(text: Any) -> bool:
    return isinstance(text, str) or (
        isinstance(text, Sequence) and all(isinstance(each, str) for each in text)
    )
