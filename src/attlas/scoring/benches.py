"""The models that methods are scored on, with their texts, what is known of them, and figures."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from random import Random

from attlas.data import Example, texts
from attlas.data.generated import dates, facts, recall, shortcuts
from attlas.models.encoding.request import Request
from attlas.models.subject import Subject
from attlas.scoring import figures
from attlas.scoring.figures import Figure, KnownCase

TRUTH, PLAUSIBILITY = "known truth", "plausibility"
KINDS = {
    TRUTH: "what the model is known to rely on, tried by substitution",
    PLAUSIBILITY: "what people marked: agreement with people, not truth about the model",
}
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
    clear = [each for each in texts("reviews") if each.label != "MIXED" and each.spans]
    return Random(seed).sample(clear, min(count, len(clear)))


def _shortcut(model: str, kind: str, about: str) -> Bench:
    return Bench(
        model,
        TRUTH,
        about,
        partial(shortcuts.generate, kind=kind),
        _whole,
        {"precision at k": figures.deciding_precision},
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
        {"AUPRC": figures.needed_auprc, "value first": figures.value_first},
    ),
    Bench(
        "dates",
        TRUTH,
        f"{_DIGITS}; the encoder mixes places",
        dates.generate,
        _each_copied,
        {"source first": figures.source_first},
    ),
    Bench(
        "dates_plain",
        TRUTH,
        f"{_DIGITS}; an encoder that cannot mix",
        dates.generate,
        _each_copied,
        {"source first": figures.source_first},
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
            "AUPRC": figures.supporting_auprc,
            "sentence first": figures.supporting_first,
            "answer first": figures.answer_first,
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
        {"AUPRC": figures.marked_auprc},
    ),
)
BENCHES: Mapping[str, Bench] = {bench.model: bench for bench in _ALL}
