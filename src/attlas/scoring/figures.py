"""How well one explanation names the decisive tokens: each figure is between zero and one.

Special tokens are in no ranking. If the question is which tokens matter, the scores of a signed
method count by their size: a token that speaks against the answer matters too.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from attlas.data.example import Example, Span
from attlas.data.generated.facts import question_and_story, sentence_spans
from attlas.mathematics.ranking import average_precision, precision_at
from attlas.results import Explanation
from attlas.shapes import TokenMarks, TokenVector
from attlas.tokens import overlap

STORY = "text_b"  # of a question and a story, the second


@dataclass(frozen=True)
class KnownCase:
    """One prediction to explain: the model's own, unless a target is given.

    `prefix` is what a decoder has written before it. Several cases may come from one example.
    """

    example: Example
    prefix: str | None = None
    target: Any = None

    @property
    def answer(self) -> str:
        """The right prediction."""
        label = str(self.example.label)
        return label if self.prefix is None else label[len(self.prefix)]


Figure = Callable[[Explanation, KnownCase], float]


def needed_auprc(explanation: Explanation, case: KnownCase) -> float:
    """Average precision of the tokens that the answer needs."""
    return average_precision(*_sizes_and_truth(explanation, "text", case.example.spans))


def value_first(explanation: Explanation, case: KnownCase) -> float:
    """Whether the value comes first among all but the key asked for."""
    named = case.example.fields
    sizes, truth = _sizes_and_truth(explanation, "text", [named["value"]])
    _, asked = _sizes_and_truth(explanation, "text", [named["query"]])
    return precision_at(sizes[~asked], truth[~asked], 1)


def source_first(explanation: Explanation, case: KnownCase) -> float:
    """Whether the character that a digit is copied from comes first in the source."""
    source = case.example.fields["sources"][len(case.prefix or "")]
    return precision_at(*_sizes_and_truth(explanation, "text", [source]), 1)


def supporting_auprc(explanation: Explanation, case: KnownCase) -> float:
    """Average precision of the tokens of the supporting sentences within the story."""
    return average_precision(*_sizes_and_truth(explanation, STORY, case.example.spans))


def answer_first(explanation: Explanation, case: KnownCase) -> float:
    """Whether the place that is the answer comes first in the story."""
    source = case.example.fields["source"]
    return precision_at(*_sizes_and_truth(explanation, STORY, [source]), 1)


def supporting_first(explanation: Explanation, case: KnownCase) -> float:
    """Whether the sentence with the largest sum of sizes is a supporting one."""
    sums, truth = [], []
    for sentence in sentence_spans(question_and_story(case.example)[1]):
        sizes, inside = _sizes_and_truth(explanation, STORY, [sentence])
        sums.append(sizes[inside].sum(dtype=np.float64))
        truth.append(sentence in case.example.spans)
    return precision_at(np.array(sums), np.array(truth), 1)


def deciding_precision(explanation: Explanation, case: KnownCase) -> float:
    """The share of deciding tokens among as many tokens from the top."""
    sizes, truth = _sizes_and_truth(explanation, "text", case.example.spans)
    return precision_at(sizes, truth, int(truth.sum()))


def marked_auprc(explanation: Explanation, case: KnownCase) -> float:
    """Average precision of the words people marked, by scores with their signs."""
    content = _content(explanation, "text")
    return average_precision(
        explanation.scores[content], _inside(explanation, content, case.example.spans)
    )


def _sizes_and_truth(
    explanation: Explanation, segment: str, spans: Sequence[Span]
) -> tuple[TokenVector, TokenMarks]:
    """How much each content token of a segment matters, and whether it is within the spans."""
    content = _content(explanation, segment)
    scores = explanation.scores[content]
    sizes = np.abs(scores) if explanation.origin.signed else scores
    return sizes, _inside(explanation, content, spans)


def _content(explanation: Explanation, segment: str) -> list[int]:
    """The positions of the tokens of a segment that are not special."""
    marks = zip(explanation.tokens.segments, explanation.tokens.special, strict=True)
    return [i for i, (name, special) in enumerate(marks) if name == segment and not special]


def _inside(
    explanation: Explanation, positions: Sequence[int], spans: Sequence[Span]
) -> TokenMarks:
    """Which of the tokens at these positions share a character with one of the spans."""
    places = explanation.tokens.spans()
    found = [_meets(places[i], spans) for i in positions]
    return np.array(found, dtype=bool)


def _meets(place: Span | None, spans: Sequence[Span]) -> bool:
    return place is not None and any(overlap(place, span) for span in spans)
