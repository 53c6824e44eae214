"""Example texts, with the scores of the weights and of a better reading side by side."""

from collections.abc import Iterator, Sequence

import numpy as np

from attlas.auditing.collected import Collected
from attlas.auditing.texts import AuditTexts
from attlas.measures import Case
from attlas.methods import METHODS
from attlas.models.asking.question import Question
from attlas.removing.erasures import Erasures
from attlas.removing.removal import removable
from attlas.results.support.report_sections import Reading, Sample

MOST = 3
TOP_SHARE = 0.2
LONGEST = 60  # tokens of an example


def find_examples(
    texts: AuditTexts, collected: Collected, weights: str, better: str, removal: str
) -> tuple[Sample, ...]:
    """The texts on which the two readings differ most, either way, and one in between."""
    table = collected.of_measure("comprehensiveness", removal)
    if not {weights, better} <= set(table):
        return ()
    short = [number for number in table.index if texts.lengths[number] <= LONGEST]
    gap = (table[better] - table[weights]).loc[short].dropna().sort_values()
    if not len(gap):
        return ()
    chosen = [
        (int(gap.index[-1]), f"{better} finds what the prediction rests on; {weights} does not."),
        (int(gap.index[0]), f"{weights} does better than {better} here."),
        (int(gap.index[len(gap) // 2]), "A text between these two."),
    ]
    known = {
        (int(text), str(method)): np.array(values)
        for text, method, values in collected.scores.to_numpy()
        if method in (weights, better)
    }
    kept = list(dict.fromkeys(number for number, _ in chosen))[:MOST]
    points = dict(reversed(chosen))
    return tuple(
        _sample(
            texts,
            number,
            points[number],
            removal,
            {name: known[number, name] for name in (weights, better) if (number, name) in known},
        )
        for number in kept
    )


def _sample(
    texts: AuditTexts, number: int, point: str, removal: str, scores: dict[str, np.ndarray]
) -> Sample:
    (question,) = texts.ask([number])
    erasures = Erasures([question], removal)
    content = removable(question, 0)
    target = question.targets[0]
    count = max(1, round(TOP_SHARE * len(content)))
    readings = []
    for name, values in scores.items():
        first = Case(values.astype(np.float64), number).order()[:count]
        hidden = np.zeros((1, len(content)), dtype=bool)
        hidden[0, first] = True
        after = erasures.of(0, hidden)
        readings.append(
            Reading(
                name,
                tuple(float(value) for value in values),
                METHODS[name].signed,
                tuple(sorted(int(place) for place in first)),
                _label(question, bool(after.chosen[0])),
                float(after.probability[0]),
            )
        )
    whole = float(erasures.whole(0).probability[0])
    pieces = tuple(_pieces(question, content))
    return Sample(point, pieces, target.name, whole, removal, tuple(readings))


def _label(question: Question, chosen: bool) -> str:
    """What the model predicts without the tokens, as far as is known."""
    name = question.targets[0].name
    if chosen:
        return name
    subject = question.subject
    classifies = subject.task is not None and subject.task.name == "sequence classification"
    others = [each for each in subject.labels if each != name] if classifies else []
    return others[0] if len(others) == 1 else f"not {name}"


def _pieces(question: Question, content: Sequence[int]) -> Iterator[str]:
    """The content tokens with the spaces before them."""
    tokens = question.inputs.tokens[0]
    labels, ends = tokens.labels(), dict.fromkeys(tokens.segments, 0)
    for position in content:
        span, segment = tokens.offsets[position], tokens.segments[position]
        if span is None or segment not in tokens.sources:
            yield f" {labels[position]}"
            continue
        source = tokens.sources[segment]
        new_segment = " " if not ends[segment] and segment != tokens.segments[content[0]] else ""
        yield new_segment + source[max(ends[segment], 0) : span[1]]
        ends[segment] = max(ends[segment], span[1])
