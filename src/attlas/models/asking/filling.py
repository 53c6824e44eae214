"""Filling up: texts of different lengths in one batch, the shorter ones padded with masked tokens.

A GPU that runs short texts mostly waits for work, so one larger batch takes hardly longer than a
small one.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from weakref import WeakKeyDictionary

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from attlas.models.asking.open_model import OpenModel
from attlas.models.asking.question import Question
from attlas.models.encoding.inputs import Inputs, stack
from attlas.models.facts.evaluation_mode import evaluation_mode
from attlas.tokens import Tokens

FILLER = ""  # the text of a filling token; no other token has an empty text
NEAR = {"cuda": 16}  # how many lengths share a batch
NEAR_ON_CPU = 4  # there, if a method runs on many texts: passes cost more than a few fillers
SMALL = 2**14  # tokens: smaller batches take as long, so any lengths share one
TOLERANCE = 1e-5
STEPS = 8  # of a number's precision: by so much other shapes round otherwise in half precision
TRIED = 16  # filling tokens in the test that they change nothing
_takes: WeakKeyDictionary[nn.Module, bool] = WeakKeyDictionary()


def fill(questions: Sequence[Question]) -> list[Question]:
    """The same questions; those of similar lengths are joined if that changes no result.

    Those of any lengths are, as long as the batch stays small.
    """
    near = NEAR.get(questions[0].subject.device.type) if questions else None
    return list(questions) if near is None else _joined(questions, near, SMALL)


def fill_list(questions: Sequence[Question]) -> list[Question]:
    """Like `fill`, for the texts of one call: on a CPU too."""
    if questions and questions[0].subject.device.type == "cpu":
        return _joined(questions, NEAR_ON_CPU, 0)
    return fill(questions)


def _joined(questions: Sequence[Question], near: int, small: int) -> list[Question]:
    groups: list[list[Question]] = []
    for question in sorted(questions, key=_length, reverse=True):
        if groups and can_fill(question) and _has_place(groups[-1], question, near, small):
            groups[-1].append(question)
        else:
            groups.append([question])
    return [group[0] if len(group) == 1 else filled(group) for group in groups]


def _length(question: Question) -> int:
    return len(question.inputs.tokens[0])


def _has_place(group: Sequence[Question], question: Question, near: int, small: int) -> bool:
    if question.inputs.arguments.keys() != group[0].inputs.arguments.keys():
        return False
    longest = _length(group[0])
    rows = len(question) + sum(map(len, group))
    is_near = longest - _length(question) < near
    return can_fill(group[0]) and (is_near or longest * rows <= small)


def split_by_length(
    lengths: NDArray[np.intp], near: int, tokens: int
) -> Iterator[NDArray[np.intp]]:
    """Which rows share a padded batch of at most so many tokens, the longest rows first."""
    order = np.argsort(-lengths, kind="stable")
    falling = -lengths[order]
    start = 0
    while start < len(order):
        longest = max(-int(falling[start]), 1)
        alike = int(np.searchsorted(falling, near - longest))
        most = max(tokens // longest, 1)
        stop = min(start + most, max(alike, start + SMALL // longest, start + 1))
        yield order[start:stop]
        start = stop


def can_fill(question: Question) -> bool:
    """Whether these texts may share a batch with texts of other lengths, tried once for a model.

    It needs a single stream and an attention mask.
    """
    subject, inputs = question.subject, question.inputs
    if subject.task is None or subject.task.name != "sequence classification":
        return False
    if subject.has_decoder or question.is_shared or len(inputs.streams()) > 1:
        return False
    if not {"input_ids", "attention_mask"} <= inputs.arguments.keys():
        return False
    if subject.model not in _takes:
        _takes[subject.model] = _stays_the_same(question)
    return _takes[subject.model]


def _stays_the_same(question: Question) -> bool:
    """Whether the model gives the same output for a text with masked tokens behind it.

    The masked tokens themselves must be able to attend: with local attention they may see nothing.
    In half precision, where much may be rounding, it must not matter either which tokens they are.
    """
    subject, inputs = question.subject, question.inputs.rows([0])
    width = len(inputs.tokens[0]) + TRIED
    if width > subject.max_tokens:
        return False
    longer = _lengthened(subject, inputs, width)
    if not all(call.weights.isfinite().all() for call in subject.read(longer)):
        return False
    name, ids = inputs.source.argument, inputs.arguments[inputs.source.argument]
    others = {**longer.arguments, name: ids.repeat(1, width)[:, :width]}
    with torch.no_grad(), evaluation_mode(subject.model):
        alone, behind = (subject.run(each.arguments) for each in (inputs, longer))
        rounding = STEPS * torch.finfo(alone.dtype).eps
        if rounding < TOLERANCE:
            return _are_close(alone, behind, TOLERANCE)
        return _are_close(alone, behind, rounding) and _are_close(
            behind, subject.run(others), TOLERANCE
        )


def _are_close(one: Tensor, other: Tensor, tolerance: float) -> bool:
    return bool((one - other).abs().max() < tolerance * max(1.0, float(one.abs().max())))


def filled(questions: Sequence[Question]) -> Question:
    """Join several questions into one; the shorter texts get masked special tokens behind them."""
    first = questions[0]
    width = max(len(each.inputs.tokens[0]) for each in questions)
    return replace(
        first,
        inputs=stack([_lengthened(first.subject, each.inputs, width) for each in questions]),
        asked=tuple(asked for each in questions for asked in each.asked),
        order=tuple(text for each in questions for text in each.order),
    )


def _lengthened(subject: OpenModel, inputs: Inputs, width: int) -> Inputs:
    more = width - len(inputs.tokens[0])
    name = inputs.source.argument
    filler = getattr(subject.tokenizer, "pad_token_id", None) or 0
    arguments = dict(inputs.arguments)
    for each in inputs.companions(inputs.source):
        value = filler if each == name else 0  # 0 in a mask means hidden
        arguments[each] = nn.functional.pad(arguments[each], (0, more), value=value)
    tokens = tuple(_followed(each, more) for each in inputs.tokens)
    source = replace(inputs.source, stop=inputs.source.start + width)
    return replace(inputs, arguments=arguments, tokens=tokens, source=source)


def fillers(tokens: Tokens) -> int:
    """How many filling tokens a text ends with."""
    if not any(tokens.special[-1:]) or tokens.texts[-1] != FILLER:
        return 0
    texts = tokens.texts
    return next((n for n, text in enumerate(reversed(texts)) if text != FILLER), len(texts))


def shown_tokens(inputs: Inputs, row: int) -> Tokens:
    """The tokens of one row of a batch, without those that it was filled up with."""
    tokens = inputs.tokens[row]
    more = fillers(tokens)
    return tokens.first(len(tokens) - more) if more else tokens


def unfilled(inputs: Inputs, row: int) -> Inputs:
    """One row of a batch as it is shown: without its filling tokens, and without arguments."""
    tokens, source = shown_tokens(inputs, row), inputs.source
    source = replace(source, stop=source.stop - len(inputs.tokens[row]) + len(tokens))
    texts = inputs.texts[row : row + 1]
    return replace(inputs, arguments={}, tokens=(tokens,), texts=texts, source=source)


def _followed(tokens: Tokens, more: int) -> Tokens:
    """The tokens with `more` special ones behind them that stand for no text."""
    return Tokens(
        tokens.texts + (FILLER,) * more,
        tokens.offsets + (None,) * more,
        tokens.special + (True,) * more,
        tokens.segments + tokens.segments[-1:] * more,
        tokens.sources,
        tokens.words,
        tokens.grids,
    )
