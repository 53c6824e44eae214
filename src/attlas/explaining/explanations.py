"""The verb `explain`: a method asked about a text, or about many, in the caller's order."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import torch

from attlas.errors import ModelError
from attlas.explaining.order import (
    DEFAULT_METHOD,
    Order,
    check_subject,
    origin,
    target_record,
    too_large,
)
from attlas.methods import METHODS, Method, Scored
from attlas.models.asking.map_selection import map_bytes, maps_of
from attlas.models.asking.memory import in_parts
from attlas.models.asking.question import Question
from attlas.models.encoding.request import Request
from attlas.models.encoding.target import Target
from attlas.models.subject import Subject
from attlas.results import Explanation, Site
from attlas.results.support.sinks import sink_notes

MOST_MAP_BYTES = 2**28  # of maps that are held without being asked for


def explain(
    subject: Subject,
    text: Any,
    method: str = DEFAULT_METHOD,
    target: Any = None,
    *,
    contrast: Any = None,
    position: int | None = None,
    prefix: str | None = None,
    chat: bool = False,
    truncate: bool = False,
    maps: bool | None = None,
    **options: Any,
) -> Any:
    """Explain what the model makes of a text: a score for each token.

    A text is a string, a pair (a tuple of two strings), a list of token ids or, for a vision model,
    a picture. A list of texts gives a list of explanations in the same order; in it, a list of
    strings is one text given as words. `target` is a class, a label, a token or a string of them,
    and the model's own prediction if it is None; `contrast` is what to explain it against.
    `maps` says whether the method's maps are held beside the scores; if it is None they are, unless
    those of all texts together take more than 256 MB, and then a note says that they were left out.
    `options` are the method's own.
    """
    check_subject(subject, "explain")
    chosen = METHODS[method]
    wanted = Target.from_dict(target) if isinstance(target, Mapping) else target
    request = Request(wanted, contrast, position, prefix, chat, truncate)
    texts = [text] if is_one_text(text) else text
    found = _explain_all(subject, texts, Order(chosen, request, options, maps))
    return found if texts is text else found[0]


attribute = explain


def is_one_text(text: Any) -> bool:
    """Whether this is one text; a list of anything but numbers is many."""
    if not isinstance(text, list):
        return True
    return bool(text) and all(isinstance(each, int) for each in text)


def _explain_all(subject: Subject, texts: Sequence[Any], order: Order) -> list[Explanation]:
    with torch.inference_mode(False):  # gradients are needed, whatever the caller has switched off
        questions = subject.ask(texts, order.request)
        size = sum(len(each) * _map_bytes(order.method, each) for each in questions)
        held = size <= MOST_MAP_BYTES if order.maps is None else order.maps
        notes = () if held or order.maps is False else (_left_out(size),)
        found: dict[int, Explanation] = {}
        for question in questions:
            asked = replace(question, maps=held)
            found.update(_explain_each(asked, order, notes))
    return [found[index] for index in range(len(texts))]


def _explain_each(
    question: Question, order: Order, notes: Sequence[str]
) -> Iterator[tuple[int, Explanation]]:
    method = order.method

    def score(rows: Sequence[int]) -> tuple[Question, Scored]:
        part = batch.rows(rows)
        return part, method.score(part, order.options)

    for batch in question.batches_holding(_map_sites(method, question) if question.maps else ()):
        for part, scored in in_parts(range(len(batch)), score, too_large(method, batch)):
            for row, index in enumerate(part.order):
                yield index, _record(order, part, scored, row, notes)


def _map_sites(method: Method, question: Question) -> Sequence[Site]:
    """The sites that a method makes maps of."""
    if method.maps == "all":
        return (Site("all", 0, 1),)
    return question.subject.sites if method.maps == "sites" else ()


def _map_bytes(method: Method, question: Question) -> int:
    """How much memory a method's maps of one text take."""
    return map_bytes(question.inputs, _map_sites(method, question))


def _left_out(size: int) -> str:
    return (
        f"The maps were left out: they take {size / 2**20:.0f} MB (maps=True, --maps holds them)."
    )


def _record(
    order: Order, question: Question, scored: Scored, row: int, notes: Sequence[str]
) -> Explanation:
    inputs, method = question.inputs, order.method
    scores = scored.scores[row].detach().float().cpu().numpy()
    if not torch.isfinite(scored.scores[row]).all():
        name = question.subject.name
        raise ModelError(f"{method.name} gave scores that are not finite for {name}")
    given = scored.maps if question.maps else ()
    found = Explanation(
        inputs.tokens[row],
        scores,
        target_record(question, row, method),
        origin(order, question.subject, {"text": _plain_text(inputs.texts[row])}, "explain"),
        question.predictions[row],
        (*inputs.notes[row], *scored.notes, *_row_notes(scored, row), *notes),
        maps_of(inputs, row, given, method.signed) if given else None,
        question.picture(row),
        scored.row_details[row] if scored.row_details else {},
    )
    return replace(found, notes=(*found.notes, *sink_notes(found.tokens, found.sinks)))


def _row_notes(scored: Scored, row: int) -> tuple[str, ...]:
    return scored.row_notes[row] if scored.row_notes else ()


def _plain_text(text: Any) -> Any:
    """A text as it can be given again: words as a list of one text; of a picture, what it was."""
    if isinstance(text, list) and not is_one_text(text):
        return [text]
    if isinstance(text, tuple):
        return tuple(_plain_text(each) for each in text)
    return text if isinstance(text, (str, tuple, list)) else type(text).__name__
