"""The models that methods are scored on: their texts, what is known of them, and the figures.

Each figure says how well one explanation names the decisive tokens, between zero and one. Special
tokens are in no ranking. If the question is which tokens matter, the scores of a signed method
count by their size: a token that speaks against the answer matters too.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from random import Random
from typing import Any

import numpy as np

from attlas.data import texts
from attlas.data.example import Example, Span
from attlas.data.generated import dates, facts, recall, shortcuts
from attlas.data.generated.facts import question_and_story, sentence_spans
from attlas.mathematics.ranking import average_precision, precision_at
from attlas.models.encoding.request import Request
from attlas.models.subject import Subject
from attlas.results import Explanation
from attlas.shapes import TokenMarks, TokenVector
from attlas.tokens import overlap

TRUTH, PLAUSIBILITY = "known truth", "plausibility"
KINDS = {
    TRUTH: "what the model is known to rely on, tried by substitution",
    PLAUSIBILITY: "what people marked: agreement with people, not truth about the model",
}
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


Input = tuple[KnownCase, ...]  # all cases that come from one example


@dataclass(frozen=True)
class Bench:
    """A model, cases it is explained on, and figures of how well that is done."""

    model: str
    kind: str  # a key of KINDS
    about: str
    generate: Callable[[int, int], list[Example]]
    cases: Callable[[Example], Input]
    figures: Mapping[str, Figure]

    def inputs(self, subject: Subject, count: int, seed: int) -> list[Input]:
        """Inputs for a model; if the truth is known, only those that it answers rightly.

        When it is wrong, nobody knows what it relied on.
        """
        if self.kind != TRUTH:
            return [self.cases(example) for example in self.generate(count, seed)]
        spare = count // 10 + 5
        drawn = [self.cases(example) for example in self.generate(count + spare, seed)]
        return [each for each in drawn if all(_is_right(subject, case) for case in each)][:count]


def _is_right(subject: Subject, case: KnownCase) -> bool:
    (question,) = subject.ask([case.example.text], Request(prefix=case.prefix))
    return bool(question.predictions[0][0]["label"] == case.answer)


def _whole(example: Example) -> Input:
    return (KnownCase(example),)


def _each_copied(example: Example) -> Input:
    """Every digit that is copied, after what stands before it in the answer."""
    label = str(example.label)
    return tuple(KnownCase(example, prefix=label[:place]) for place in example.fields["copied"])


def _labelled(example: Example) -> Input:
    return (KnownCase(example, target=example.label),)


def _marked_reviews(count: int, seed: int) -> list[Example]:
    every = texts("reviews")
    return Random(seed).sample(every, min(count, len(every)))


def _shortcut(model: str, kind: str, about: str) -> Bench:
    return Bench(
        model,
        TRUTH,
        about,
        partial(shortcuts.generate, kind=kind),
        _whole,
        {"precision at k": deciding_precision},
    )


_DIGITS = "a date rewritten: source first = the digit that is copied comes first in the source"
_ALL = (
    Bench(
        "recall",
        TRUTH,
        "a value looked up by its key: AUPRC of value, key and query; value first = the value "
        "comes first among all but the query",
        recall.generate,
        _whole,
        {"AUPRC": needed_auprc, "value first": value_first},
    ),
    Bench(
        "dates",
        TRUTH,
        f"{_DIGITS}; the encoder mixes places",
        dates.generate,
        _each_copied,
        {"source first": source_first},
    ),
    Bench(
        "dates_plain",
        TRUTH,
        f"{_DIGITS}; an encoder that cannot mix",
        dates.generate,
        _each_copied,
        {"source first": source_first},
    ),
    Bench(
        "facts",
        TRUTH,
        "a question about a story: AUPRC of the tokens of supporting sentences among the story's; "
        "sentence first = the sentence with the largest sum is a supporting one; answer first = "
        "the place that is the answer, where it stands in a supporting sentence, comes first",
        facts.generate,
        _whole,
        {
            "AUPRC": supporting_auprc,
            "sentence first": supporting_first,
            "answer first": answer_first,
        },
    ),
    _shortcut("shortcut_token", "token", "one planted token decides (k = 1)"),
    _shortcut("shortcut_context", "context", "a token decides where another is there too (k = 2)"),
    _shortcut("shortcut_pair", "pair", "the order of two tokens decides (k = 2)"),
    _shortcut(
        "shortcut_deceptive",
        "token",
        "one planted token decides, and attention was trained to look away from it (k = 1)",
    ),
    Bench(
        "sentiment",
        PLAUSIBILITY,
        "reviews: AUPRC of the words people marked for the label they gave",
        _marked_reviews,
        _labelled,
        {"AUPRC": marked_auprc},
    ),
)
BENCHES: Mapping[str, Bench] = {bench.model: bench for bench in _ALL}
