"""Filling up: texts of different lengths in one batch, the shorter ones padded with masked tokens.

A GPU that runs short texts mostly waits for work, so one larger batch takes hardly longer than a
small one.
"""

from collections.abc import Sequence
from dataclasses import replace
from weakref import WeakKeyDictionary

import torch
from torch import nn

from attlas.models.asking.open_model import OpenModel
from attlas.models.asking.question import Question
from attlas.models.encoding.inputs import Inputs, stack
from attlas.models.facts.evaluation_mode import evaluation_mode
from attlas.tokens import Tokens

FILLER = ""  # the text of a filling token; no other token has an empty text
NEAR = {"cuda": 16}  # how many lengths share a batch; on a CPU this gains nothing
TOLERANCE = 1e-5
TRIED = 16  # filling tokens in the test that they change nothing
_takes: WeakKeyDictionary[nn.Module, bool] = WeakKeyDictionary()


def fill(questions: Sequence[Question]) -> list[Question]:
    """The same questions; those of similar lengths are joined if that changes no result."""
    groups: dict[object, list[Question]] = {}
    for number, question in enumerate(questions):
        near = NEAR.get(question.subject.device.type)
        length = len(question.inputs.tokens[0])
        shares = near is not None and can_fill(question)
        groups.setdefault(-(-length // near) if shares and near else (number,), []).append(question)
    return [group[0] if len(group) == 1 else filled(group) for group in groups.values()]


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
    """
    subject, inputs = question.subject, question.inputs.rows([0])
    width = len(inputs.tokens[0]) + TRIED
    if subject.model.dtype not in (torch.float32, torch.float64) or width > subject.max_tokens:
        return False
    longer = _lengthened(subject, inputs, width)
    if not all(call.weights.isfinite().all() for call in subject.read(longer)):
        return False
    with torch.no_grad(), evaluation_mode(subject.model):
        alone, behind = (subject.run(each.arguments) for each in (inputs, longer))
    largest = max(1.0, float(alone.abs().max()))
    return bool((alone - behind).abs().max() < TOLERANCE * largest)


def filled(questions: Sequence[Question]) -> Question:
    """Join several questions into one; the shorter texts get masked special tokens behind them."""
    first = questions[0]
    width = max(len(each.inputs.tokens[0]) for each in questions)
    return replace(
        first,
        inputs=stack([_lengthened(first.subject, each.inputs, width) for each in questions]),
        targets=tuple(target for each in questions for target in each.targets),
        predictions=tuple(known for each in questions for known in each.predictions),
        order=tuple(text for each in questions for text in each.order),
        known_scores=tuple(known for each in questions for known in each.known_scores),
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
    return next((n for n, text in enumerate(reversed(tokens)) if text != FILLER), len(tokens))


def _followed(tokens: Tokens, more: int) -> Tokens:
    """The tokens with `more` special ones behind them that stand for no text."""
    return replace(
        tokens,
        texts=tokens.texts + (FILLER,) * more,
        offsets=tokens.offsets + (None,) * more,
        special=tokens.special + (True,) * more,
        segments=tokens.segments + tokens.segments[-1:] * more,
    )
