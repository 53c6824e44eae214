"""Intervene: the prediction before and after edits of the attention."""

from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import replace
from time import monotonic
from typing import Any

import torch

from attlas.errors import UsageError
from attlas.models.asking.question import Asked, Question, look
from attlas.models.subject import Subject
from attlas.models.tap import edits as making
from attlas.models.tap.edits import Edit
from attlas.serving.requests import GivenEdit, Intervening
from attlas.serving.shelf import Shelf
from attlas.serving.work.asking import asked_of


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


def edit_of(given: GivenEdit) -> Edit:
    """An edit of a request as the tap takes it."""
    place = {"kind": given.kind, "layer": given.layer}
    rows = {"heads": given.heads, "queries": given.queries}
    if given.action == "zero" and given.keys is not None:
        return making.zero(given.keys).at(**place, **rows)
    return _made(given).at(**place, **rows, keys=given.keys)


def _made(given: GivenEdit) -> Edit:
    if given.action == "scale":
        return making.scale(given.factor or 0.0)
    if given.action == "zero":
        return making.scale(0.0)
    if given.action == "uniform":
        return making.uniform()
    if given.action == "shuffle":
        return making.permute(given.seed)
    return _replacing(given)


def _replacing(given: GivenEdit) -> Edit:
    """Weights for the chosen heads, rows and columns, put where they belong."""
    try:
        weights = torch.tensor(given.weights, dtype=torch.float64)
    except ValueError as uneven:
        raise UsageError("the rows of weights have different lengths") from uneven

    def change(old: torch.Tensor, _: torch.Tensor) -> torch.Tensor:
        places = [
            torch.arange(size) if chosen is None else torch.tensor(chosen)
            for chosen, size in zip(
                (given.heads, given.queries, given.keys), old.shape[1:], strict=True
            )
        ]
        shape = tuple(map(len, places))
        for each, size in zip(places, old.shape[1:], strict=True):
            if int(each.max()) >= size:
                raise UsageError(f"number {int(each.max())} is beyond the {size} that there are")
        try:
            block = weights.to(old).expand(shape)
        except RuntimeError as problem:
            raise UsageError(
                f"weights of shape {tuple(weights.shape)} cannot replace {shape}"
            ) from problem
        new = old.clone()
        heads, queries, keys = (each.to(old.device) for each in places)
        new[:, heads[:, None, None], queries[:, None], keys] = block
        return new

    return Edit("replace", change)


def asked_again(question: Question, edits: Sequence[Edit]) -> Question:
    """The same target and the same place, asked under edits."""
    (target,) = question.targets
    request = replace(question.asked[0].request, target=target, position=target.position)
    again = replace(question, asked=(Asked(request),))
    with question.subject.tap(edits, sites=()) if edits else nullcontext():
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


def score_of(question: Question) -> float:
    """The probability of the target, or its value."""
    (scores,) = question.known_scores
    return scores["probability"]


def maps_under(subject: Subject, question: Question, edits: Sequence[Edit]) -> dict[str, Any]:
    """The attention under edits, as a view draws it."""
    with subject.tap(edits, sites=()) if edits else nullcontext():
        return subject.attention_to(question.inputs).payload()
