"""The verb `explain`: run a method on one text, or on many, in the order they were given."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, overload

import numpy as np
import torch

from attlas.data.example import Example
from attlas.explaining.footprint import fitting_rows, map_sites
from attlas.explaining.licensing import HeatMap, licences, text_seed, two_removals
from attlas.explaining.method_call import (
    MethodCall,
    explanations_of,
    first_that_runs,
    memory_message,
    on_this_machine,
    requests_for,
)
from attlas.explaining.streams import TextStream
from attlas.methods import Method, Scored
from attlas.models.asking.filling import fill_list
from attlas.models.asking.map_selection import map_bytes
from attlas.models.asking.memory import in_fitting_batches, telling_shortages
from attlas.models.asking.question import Question
from attlas.models.encoding.request import Request
from attlas.models.encoding.text_inputs import ManyTexts, OneText, are_pairs, texts_of
from attlas.models.facts.evaluation_mode import evaluation_mode
from attlas.models.subject import Subject, check_subject
from attlas.progress import Watch
from attlas.removing.erasures import Erasures
from attlas.results import Explanation
from attlas.verbs import verb

MOST_MAP_BYTES = 2**28  # of maps that are kept without being asked for


@overload
def explain(
    subject: Subject,
    text: ManyTexts,
    method: str | None = ...,
    target: Any = ...,
    *,
    contrast: Any = ...,
    position: Any = ...,
    prefix: Any = ...,
    chat: bool = ...,
    truncate: bool = ...,
    maps: bool | None = ...,
    licence: bool = ...,
    watch: Watch = ...,
    **options: Any,
) -> list[Explanation]: ...
@overload
def explain(
    subject: Subject,
    text: Iterator[Any],
    method: str | None = ...,
    target: Any = ...,
    *,
    contrast: Any = ...,
    position: Any = ...,
    prefix: Any = ...,
    chat: bool = ...,
    truncate: bool = ...,
    maps: bool | None = ...,
    licence: bool = ...,
    watch: Watch = ...,
    **options: Any,
) -> Iterator[Explanation]: ...
@overload
def explain(
    subject: Subject,
    text: OneText,
    method: str | None = ...,
    target: Any = ...,
    *,
    contrast: Any = ...,
    position: Any = ...,
    prefix: Any = ...,
    chat: bool = ...,
    truncate: bool = ...,
    maps: bool | None = ...,
    licence: bool = ...,
    watch: Watch = ...,
    **options: Any,
) -> Explanation: ...
@verb("explaining")
@telling_shortages
def explain(
    subject: Subject,
    text: Any,
    method: str | None = None,
    target: Any = None,
    *,
    contrast: Any = None,
    position: Any = None,
    prefix: Any = None,
    chat: bool = False,
    truncate: bool = False,
    maps: bool | None = None,
    licence: bool = False,
    watch: Watch = lambda step: None,
    **options: Any,
) -> Explanation | list[Explanation] | Iterator[Explanation]:
    """Explain a prediction by a score for each token of the text.

    Args:
        subject: The model, from `attlas.load`.
        text: One text, which gives one Explanation, or a list of texts, which gives a list of
            Explanations in the same order. One text is a string, a pair (a tuple of two strings, or
            of a picture and a string), a list of token ids, a picture, or an `Example`, whose label
            the result shows as the true one. A model without a head compares the texts of a pair.
            A conversation is one text too: a list of messages, `[{"role": "user", "content":
            "Hello"}]`, or `{"messages": …, "tools": …}`. Any other list, Series or array is a list
            of texts; in it, a list of strings is one text given as words. So `["not", "bad"]` are
            two texts, and `[["not", "bad"]]` is one of two words. An iterator or generator of texts
            gives an iterator of Explanations in the same order, and at most 512 are held at a time.
        method: The name of a method; `attlas.list_methods()` lists them. By default, the best that
            runs on the model: `attn_lrp`, otherwise `gradient_attention`.
        target: The class, label, token or string to explain, or a saved target. By default, what
            the model predicts. A list means either of several: the mean of their logits, or the sum
            of their probabilities. With a list of texts, a list holds one target for each; so it is
            with `contrast`, `position` and `prefix`. With an iterator it is one target for all.
        contrast: Explain the target against this one, or a list: the difference of the two.
        position: Where to explain the prediction, in models that label or fill tokens: the number
            of a token, a word, or a word and which one, `("was", 2)`.
        prefix: What the decoder of an encoder–decoder has written so far.
        chat: Take the text as the message of a user, for the tokenizer's chat template.
        truncate: Cut a text that is too long for the model; otherwise it is an error.
        maps: Keep the method's maps beside the scores. By default they are kept unless those of
            all texts take 256 MB or more; then a note says that they were left out. Those of an
            iterator are kept only if asked for.
        licence: Say for each text whether its largest scores may be read as the tokens that matter.
            The model is asked about 40 times for each token.
        watch: Is told how far the licence is.
        **options: The method's own options; its docstring describes them.

    Example:
        >>> import attlas
        >>> subject = attlas.load("sentiment")
        >>> explanation = attlas.explain(subject, "a warm and funny film", "attention_rollout")
        >>> explanation.target.name
        'POSITIVE'
        >>> len(explanation.scores) == len(explanation.tokens)
        True
        >>> [each.target.name for each in attlas.explain(subject, ["so good", "so dull"])]
        ['POSITIVE', 'NEGATIVE']
    """
    check_subject(subject, "explain")
    how = {"contrast": contrast, "position": position, "prefix": prefix}
    if isinstance(text, Iterator):
        how |= {"target": target, "chat": chat, "truncate": truncate, "licence": licence}
        explain_list = partial(explain, subject, watch=watch)
        return TextStream(explain_list, method, bool(maps), how, options).explain(text)
    texts, alone = texts_of(text)
    if subject.task is None and are_pairs(texts):
        subject = subject.comparing()
    count = None if alone else len(texts)
    requests = requests_for(count, {"target": target, **how}, Request(chat=chat, truncate=truncate))
    given = [each.text if isinstance(each, Example) else each for each in texts]

    def run(chosen: Method, notes: tuple[str, ...]) -> list[Explanation]:
        chosen.check_options(options)  # also if there are no texts
        known = {
            number: MethodCall(chosen, each, options, maps, licence, notes)
            for number, each in {id(each): each for each in requests}.items()
        }
        calls = [known[id(each)] for each in requests]  # texts of one request share its call
        return _explain_all(subject, given, calls, watch) if calls else []

    explanations = [
        replace(each, true_label=one.label) if isinstance(one, Example) and one.label else each
        for each, one in zip(first_that_runs(method, run, maps=maps), texts, strict=True)
    ]
    return explanations[0] if alone else explanations


attribute = explain


def _explain_all(
    subject: Subject, texts: Sequence[Any], calls: Sequence[MethodCall], watch: Watch
) -> list[Explanation]:
    call = calls[0]
    with torch.inference_mode(False):  # methods need gradients even if the caller turned them off
        ask = subject.pose if call.method.learns and not call.licence else subject.ask
        questions = ask(texts, [each.request for each in calls])
        erasures = two_removals(questions) if call.licence else []
        size = sum(len(each) * _map_bytes(call.method, each) for each in questions)
        kept = size < MOST_MAP_BYTES if call.maps is None else call.maps
        notes = call.notes if kept or call.maps is False else (*call.notes, _left_out(size))
        explanations: dict[int, Explanation] = {}
        for question in fill_list(questions) if call.method.fills else questions:
            asked = replace(question, maps=kept)
            explanations.update(_explain_each(asked, calls, notes))
        if call.licence:
            explanations = _licensed(explanations, erasures, texts, watch)
    return [explanations[index] for index in range(len(texts))]


def _licensed(
    explanations: Mapping[int, Explanation],
    erasures: Sequence[Erasures],
    texts: Sequence[Any],
    watch: Watch,
) -> dict[int, Explanation]:
    heat_maps = [
        HeatMap(
            number,
            each.scores[erasures[0].content(number)].astype(np.float64),
            each.origin.shows_sides,
            text_seed(texts[number]),
        )
        for number, each in explanations.items()
    ]
    given = licences(erasures, heat_maps, watch=watch)
    return {
        number: replace(each, licence=licence)
        for (number, each), licence in zip(explanations.items(), given, strict=True)
    }


def _explain_each(
    question: Question, calls: Sequence[MethodCall], notes: Sequence[str]
) -> Iterator[tuple[int, Explanation]]:
    method, options = calls[0].method, calls[0].options

    def score(rows: Sequence[int]) -> tuple[Question, Scored]:
        asked = batch if len(rows) == len(batch) else batch.rows(rows)
        with evaluation_mode(question.subject.model):  # once for all that the method does
            return asked, on_this_machine(method.score(asked, options))

    held = question.subject.rows_holding(
        question.inputs, map_sites(method, question) if question.maps else (), len(question)
    )
    for batch in question.batches_of(min(held, fitting_rows(question, method))):
        for asked, scored in in_fitting_batches(
            range(len(batch)), score, memory_message(method, batch)
        ):
            yield from explanations_of(calls, asked, scored, notes)


def _map_bytes(method: Method, question: Question) -> int:
    """How much memory a method's maps of one text take."""
    return map_bytes(question.inputs, map_sites(method, question))


def _left_out(size: int) -> str:
    return (
        f"The maps were left out: they take {size / 2**20:.0f} MB (maps=True, --maps keeps them)."
    )
