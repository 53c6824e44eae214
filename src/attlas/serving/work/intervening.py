"""Intervene: the prediction before and after edits of the attention."""

from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import replace
from time import monotonic
from typing import Any

from attlas.models.asking.question import Asked, Question, look
from attlas.models.subject import Subject
from attlas.models.tap.edits import Edit
from attlas.serving.requests import Intervening
from attlas.serving.shelf import Shelf
from attlas.serving.work.asking import asked_of, score_of
from attlas.serving.work.edits import edit_of


def answer_intervene(shelf: Shelf, asking: Intervening) -> dict[str, Any]:
    """The prediction before and after, how far it moved, and the maps if they are asked for."""
    begun = monotonic()
    asked = asked_of(shelf.subject(asking.model), asking)
    question = asked.question()
    edits = [edit_of(each) for each in asking.edits]
    after = asked_again(question, edits)
    maps = None
    if asking.maps:
        kept = {"before": [], "after": edits}
        maps = {name: maps_under(asked.subject, question, each) for name, each in kept.items()}
    return {
        **moved(question, after),
        "maps": maps,
        "seconds": monotonic() - begun,
    }


def asked_again(question: Question, edits: Sequence[Edit]) -> Question:
    """The same target and the same place, asked under edits."""
    (target,) = question.targets
    request = replace(question.asked[0].request, target=target, position=target.position)
    again = replace(question, asked=(Asked(request),))
    with question.subject.tap(edits) if edits else nullcontext():
        look(again.subject, again.inputs, again.asked)
    return again


def moved(before: Question, after: Question) -> dict[str, Any]:
    """Two answers to one question, and how far they are apart."""
    scores = [score_of(before), score_of(after)]
    first, second = before.predictions[0], after.predictions[0]
    return {
        "before": {"prediction": [dict(each) for each in first], "score": scores[0]},
        "after": {"prediction": [dict(each) for each in second], "score": scores[1]},
        "target": before.targets[0].name,
        "flipped": first[0]["label"] != second[0]["label"],
        "moved": abs(scores[1] - scores[0]),
    }


def maps_under(
    subject: Subject, question: Question, edits: Sequence[Edit], site: str | None = None
) -> dict[str, Any]:
    """The attention under edits, at all sites or at one, as a view draws it."""
    with subject.tap(edits) if edits else nullcontext():
        return subject.attention_to(question.inputs, site).payload()
