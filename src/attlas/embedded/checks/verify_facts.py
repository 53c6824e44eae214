"""Whether the answers about stories depend on the supporting sentences: places are exchanged."""

from random import Random
from typing import Any

from attlas.data import Example
from attlas.data.example import Span
from attlas.data.generated import facts
from attlas.models.subject import Subject

MINIMUM = {
    "accuracy": 0.95,
    "accuracy, one fact": 0.95,
    "accuracy, two facts": 0.88,
    "accuracy, three facts": 0.9,
    "follows the source": 0.9,
    "ignores the rest": 0.9,
    "both": 0.9,
}


def verify(subject: Subject, count: int = 200, seed: int = 1) -> dict[str, float]:
    """Figures on stories that training never saw.

    `follows the source`: the share of stories in which the answer changes with the place that it is
    read from. `ignores the rest`: the share in which the answer stays when a place in a sentence
    that supports nothing changes. `both`: the share with both. The changed stories are possible
    ones, and their answers are worked out again.
    """
    random = Random(seed)
    examples = facts.generate(count, seed, held_out=True)
    source = [exchange_source(example, random) for example in examples]
    other = [exchange_other(example, random) for example in examples]
    right = _right(subject, examples)
    follows, ignores = _right(subject, source), _right(subject, other)
    both = [
        follow and ignore is not False
        for follow, ignore in zip(follows, ignores, strict=True)
        if follow is not None
    ]
    kinds = [example.fields["kind"] for example in examples]
    figures = {"accuracy": _share(right)}
    for kind in facts.KINDS:
        one = [each for each, name in zip(right, kinds, strict=True) if name == kind]
        figures[f"accuracy, {kind} fact{'' if kind == 'one' else 's'}"] = _share(one)
    return figures | {
        "follows the source": _share(follows),
        "ignores the rest": _share(ignores),
        "both": _share(both),
    }


def exchange_source(example: Example, random: Random) -> Example | None:
    """The story with another place where the answer stands: that place is then the answer."""
    for place in _others(example, example.fields["source"], random):
        found = _exchanged(example, example.fields["source"], place)
        if found and found.label == place:
            return found
    return None


def exchange_other(example: Example, random: Random) -> Example | None:
    """The story with another place in a sentence that supports nothing: the answer stays."""
    events, spans = facts.read_story(example.text[1]), facts.thing_spans(example.text[1])
    free = [
        span
        for number, (event, span) in enumerate(zip(events, spans, strict=True))
        if event.verb in facts.GOING and number not in example.fields["facts"]
    ]
    for span in random.sample(free, len(free)):
        for place in _others(example, span, random):
            found = _exchanged(example, span, place)
            if found and found.label == example.label:
                return found
    return None


def _others(example: Example, span: Span, random: Random) -> list[str]:
    now = example.text[1][slice(*span)]
    return random.sample([place for place in facts.PLACES if place != now], len(facts.PLACES) - 1)


def _exchanged(example: Example, span: Span, place: str) -> Example | None:
    question, story = facts.question_and_story(example)
    story = story[: span[0]] + place + story[span[1] :]
    solution = facts.solve(question, story)
    if solution is None or solution.facts != example.fields["facts"]:
        return None
    return facts.make_example(question, story, example.fields["kind"])


def _right(subject: Subject, examples: list[Any]) -> list[bool | None]:
    """Whether each is answered rightly; None if there is no story to ask."""
    asked = [example for example in examples if example is not None]
    labels = iter(subject.predict([example.text for example in asked])["label"] if asked else [])
    return [None if example is None else next(labels) == example.label for example in examples]


def _share(found: list[Any]) -> float:
    known = [each for each in found if each is not None]
    return sum(known) / len(known) if known else float("nan")
