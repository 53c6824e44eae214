"""From what a user asks for (a label, a token, an answer, nothing) to a Target, task by task."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from attlas.errors import UnknownNameError, UsageError
from attlas.models.asking.answer_spans import find_answer
from attlas.models.asking.target_case import Prediction, Resolved, TargetCase
from attlas.models.encoding.target import Target
from attlas.models.encoding.token_ids import following_ids, is_number, token_ids
from attlas.tokens import Tokens

MOST_SHOWN = 5
_READ_AT_A_TOKEN = ("token classification", "masked lm")


Resolver = Callable[[TargetCase], Resolved]


def resolve(case: TargetCase) -> Resolved:
    """The target of one row, the model's best choices, and notes on what the user left open."""
    task, request = case.subject.task, case.request
    if task is None:
        raise UsageError(
            f"{case.subject.name} has no head, so there is no prediction to explain; "
            "its attention can be read (subject.attention)"
        )
    if request.position is not None and task.name not in _READ_AT_A_TOKEN:
        raise UsageError(f"a position is for {' and '.join(_READ_AT_A_TOKEN)}, not {task.name}")
    if request.prefix and task.name != "sequence to sequence":
        raise UsageError(f"a prefix is for an encoder–decoder that writes, not {task.name}")
    if isinstance(request.target, Target):
        own = replace(case, request=replace(request, target=None, contrast=None))
        return request.target.check(case.logits), _RESOLVERS[task.name](own)[1], ()
    return _RESOLVERS[task.name](case)


def _classes(case: TargetCase) -> Resolved:
    """A class of the whole input."""
    labels, link = case.subject.labels, case.subject.link
    row = case.logits[-1]
    chosen = case.request.target
    index = int(row.argmax()) if chosen is None else find_label(labels, chosen)
    target = Target(labels[index], ((-1, index),), link, **_contrast(case, labels, -1))
    return target, best_choices(row, link, labels.__getitem__), ()


def _classes_of_a_token(case: TargetCase) -> Resolved:
    """A label of one token: the one asked for, else the surest that is not `O`."""
    labels = case.subject.labels
    position, notes = _position_of_label(case, labels)
    row, place = case.logits[position], position - len(case.tokens)
    chosen = case.request.target
    index = int(row.argmax()) if chosen is None else find_label(labels, chosen)
    target = Target(
        labels[index], ((place, index),), position=position, **_contrast(case, labels, place)
    )
    return target, best_choices(row, "softmax", labels.__getitem__), notes


def _position_of_label(case: TargetCase, labels: Sequence[str]) -> tuple[int, tuple[str, ...]]:
    if case.request.position is not None:
        return check_position(case.request.position, case.tokens), ()
    sure = case.logits.float().softmax(-1)
    if case.request.target is not None:
        sure = sure[:, find_label(labels, case.request.target)]
    else:
        outside = [index for index, label in enumerate(labels) if label.upper() == "O"]
        sure[:, outside] -= 1  # only if nothing else is found
        sure = sure.max(-1).values
    sure = sure.masked_fill(torch.tensor(case.tokens.special, device=sure.device), -2.0)
    position = int(sure.argmax())
    return position, (f"read at token {position}, {case.tokens[position]!r}: the surest one",)


def _masked_token(case: TargetCase) -> Resolved:
    """What stands at the mask, or at another position if one is given."""
    tokenizer, wanted = case.subject.tokenizer, case.request.target
    position, notes = _position_of_mask(case)
    place, row = position - len(case.tokens), case.logits[position]
    index = int(row.argmax()) if wanted is None else _one_token(case, wanted)
    contrast = _token_contrast(case, place)
    target = Target(show_ids(tokenizer, [index]), ((place, index),), position=position, **contrast)
    return target, best_choices(row, "softmax", lambda i: show_ids(tokenizer, [i])), notes


def _position_of_mask(case: TargetCase) -> tuple[int, tuple[str, ...]]:
    if case.request.position is not None:
        return check_position(case.request.position, case.tokens), ()
    mask = case.subject.tokenizer.mask_token
    masks = [i for i, text in enumerate(case.tokens) if text == mask]
    if not masks:
        raise UsageError(f"the text has no {mask} to fill in: put one, or give a position")
    return masks[0], (f"read at the first of {len(masks)} masks",) if len(masks) > 1 else ()


def _next_tokens(case: TargetCase) -> Resolved:
    """The token that comes next, or a string of several: the sum of their log-probabilities."""
    tokenizer, count = case.subject.tokenizer, max(len(case.chain), 1)
    row = case.logits[-count]
    chain = case.chain or (int(row.argmax()),)
    picks = tuple((place, token) for place, token in zip(range(-count, 0), chain, strict=True))
    if case.request.contrast is not None and count > 1:
        raise UsageError("a contrast needs a target of one token")
    contrast = _token_contrast(case, -1)
    target = Target(show_ids(tokenizer, chain), picks, chained=count > 1, **contrast)
    notes = (f"the sum of the log-probabilities of {count} tokens",) if count > 1 else ()
    return target, best_choices(row, "softmax", lambda i: show_ids(tokenizer, [i])), notes


def find_label(labels: Sequence[str], wanted: Any) -> int:
    """The index of a class by its number or its name, whatever the case of its letters."""
    if is_number(wanted):
        if not 0 <= wanted < len(labels):
            raise UsageError(f"unknown class {wanted}: this model has 0 to {len(labels) - 1}")
        return int(wanted)
    lowered = [label.lower() for label in labels]
    if str(wanted).lower() in lowered:
        return lowered.index(str(wanted).lower())
    if str(wanted).isdigit() and int(wanted) < len(labels):
        return int(wanted)
    raise UnknownNameError("label", str(wanted), labels)


def check_position(position: int, tokens: Tokens) -> int:
    """A position among the tokens, counted from the end if negative."""
    if not -len(tokens) <= position < len(tokens):
        raise UsageError(f"unknown position {position}: the input has 0 to {len(tokens) - 1}")
    return position % len(tokens)


def best_choices(row: Tensor, link: str, name: Callable[[int], str]) -> Prediction:
    """The choices the model likes best, with their probabilities; a value where it has none."""
    if link == "identity":
        return tuple(
            {"label": name(i), "probability": None, "value": float(v)} for i, v in enumerate(row)
        )
    sure = row.float().sigmoid() if link == "sigmoid" else row.float().softmax(-1)
    best = sure.topk(min(MOST_SHOWN, len(sure)))
    pairs = zip(best.indices.tolist(), best.values.tolist(), strict=True)
    return tuple({"label": name(index), "probability": value} for index, value in pairs)


def _contrast(case: TargetCase, labels: Sequence[str], place: int) -> dict[str, Any]:
    if case.request.contrast is None:
        return {}
    index = find_label(labels, case.request.contrast)
    return {"contrast": ((place, index),), "contrast_name": labels[index]}


def _token_contrast(case: TargetCase, place: int) -> dict[str, Any]:
    if case.request.contrast is None:
        return {}
    index = _one_token(case, case.request.contrast)
    return {
        "contrast": ((place, index),),
        "contrast_name": show_ids(case.subject.tokenizer, [index]),
    }


def _one_token(case: TargetCase, wanted: Any) -> int:
    subject = case.subject
    if subject.task is not None and subject.task.name == "causal lm":
        ids = following_ids(subject.tokenizer, case.tokens, wanted, case.request.chat)
    else:
        ids = token_ids(subject.tokenizer, wanted, written=subject.has_decoder)
    if len(ids) != 1:
        raise UsageError(f"{wanted!r} is {len(ids)} tokens, and one is needed here")
    return ids[0]


def show_ids(tokenizer: Any, ids: Sequence[int]) -> str:
    """Tokens as a reader would write them."""
    text: str = tokenizer.decode(list(ids))
    return text or " ".join(tokenizer.convert_ids_to_tokens(list(ids)))


_RESOLVERS: dict[str, Resolver] = {
    "sequence classification": _classes,
    "next sentence": _classes,
    "image classification": _classes,
    "image and text": _classes,
    "visual question answering": _classes,
    "token classification": _classes_of_a_token,
    "masked lm": _masked_token,
    "causal lm": _next_tokens,
    "sequence to sequence": _next_tokens,
    "question answering": find_answer,
}
