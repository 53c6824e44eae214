"""From what a user asks for (a label, a token, an answer or nothing) to a Target, by task."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import torch
from torch import Tensor

from attlas.errors import UnknownNameError, UsageError
from attlas.models.asking.positions import find_position, surest_frame
from attlas.models.encoding.chat_parts import chat_text
from attlas.models.encoding.request import Request
from attlas.models.encoding.sounds import check_letters
from attlas.models.encoding.target import Pick, Prediction, Ranked, Target, best_choices, rank
from attlas.models.encoding.token_ids import following_ids, is_number, show_ids, token_ids
from attlas.models.facts.model_facts import ModelFacts
from attlas.shapes import Logits
from attlas.tokens import Tokens

LONGEST_ANSWER = 30  # tokens
_READ_AT_A_TOKEN = ("token classification", "masked lm", "speech recognition")


@dataclass(frozen=True, eq=False)
class TargetCase:
    """One row whose target is resolved: its tokens, logits `[place, choice]`, and target tokens."""

    subject: ModelFacts
    request: Request
    tokens: Tokens
    logits: Tensor
    text: Any = None  # as the user gave it
    chain: tuple[int, ...] = ()  # token ids of the target, if they are part of the input
    ranked: Ranked | None = None  # the choices at the last place, if known for a whole batch


Resolved = tuple[Target, Prediction, tuple[str, ...]]  # with notes
Resolver = Callable[[TargetCase], Resolved]


def resolve(case: TargetCase) -> Resolved:
    """The target of one row, the model's best choices, and notes on what the user left open."""
    task, request = case.subject.task, case.request
    if task is None:
        raise UsageError(f"{case.subject.headless}; its attention can be read (subject.attention)")
    if request.position is not None and task.name not in _READ_AT_A_TOKEN:
        raise UsageError(f"a position is for {' and '.join(_READ_AT_A_TOKEN)}, not {task.name}")
    if request.prefix and task.name != "sequence to sequence":
        raise UsageError(f"a prefix is for an encoder–decoder that writes, not {task.name}")
    if isinstance(request.target, Target):
        own = replace(case, request=replace(request, target=None, contrast=None))
        return request.target.check(case.logits), _RESOLVERS[task.name](own)[1], ()
    return _RESOLVERS[task.name](case)


def resolve_each(cases: Sequence[TargetCase], logits: Logits) -> list[Resolved]:
    """What `resolve` finds of each case, whose logits are the rows of a table."""
    task, link = cases[0].subject.task, cases[0].subject.link
    if task is None or _RESOLVERS[task.name] is not _classes:
        return [resolve(case) for case in cases]
    found: dict[tuple[int, int], Target] = {}  # texts of one request and one class share it
    resolved: list[Resolved] = []
    for case, its in zip(cases, rank(logits[:, -1], link), strict=True):
        key = id(case.request), its.largest
        if key not in found:
            found[key] = resolve(replace(case, ranked=its))[0]
        resolved.append((found[key], its.named(case.subject.labels.__getitem__), ()))
    return resolved


def _classes(case: TargetCase) -> Resolved:
    """A class of the whole input; by default the most likely one."""
    labels, link = case.subject.labels, case.subject.link
    ranked = case.ranked or rank(case.logits[-1:], link)[0]
    name = labels.__getitem__
    target = _target_at(case, -1, ranked.largest, name, partial(find_label, labels))
    return target, ranked.named(name), ()


def _classes_of_a_token(case: TargetCase) -> Resolved:
    """A label of one token; by default the most certain one that is not `O`."""
    labels = case.subject.labels
    position, notes = _position_of_label(case, labels)
    row, place = case.logits[position], position - len(case.tokens)
    best, name = int(row.argmax()), labels.__getitem__
    target = _target_at(case, place, best, name, partial(find_label, labels))
    target = replace(target, position=position)
    return target, best_choices(row, "softmax", name), notes


def _target_at(
    case: TargetCase,
    place: int,
    best: int,
    name: Callable[[int], str],
    find: Callable[[Any], int],
) -> Target:
    """The target and the contrast that the user chose at one place; by default the best one."""
    given, other = case.request.target, case.request.contrast
    either = isinstance(given, list) or isinstance(other, list)
    if either and case.subject.link != "softmax":
        raise UsageError("several targets at once are for choices of which only one can hold")
    chosen = (best,) if given is None else _find_all(given, find)
    against = () if other is None else _find_all(other, find)
    return Target(
        " or ".join(map(name, chosen)),
        tuple((place, index) for index in chosen),
        case.subject.link,
        tuple((place, index) for index in against),
        " or ".join(map(name, against)) or None,
        either=either,
    )


def _find_all(given: Any, find: Callable[[Any], int]) -> tuple[int, ...]:
    found = tuple(dict.fromkeys(map(find, given if isinstance(given, list) else [given])))
    if not found:
        raise UsageError("a list of targets or contrasts holds at least one")
    return found


def _position_of_label(case: TargetCase, labels: Sequence[str]) -> tuple[int, tuple[str, ...]]:
    if case.request.position is not None:
        return find_position(case.request.position, case.tokens)
    sure = case.logits.float().softmax(-1)
    if case.request.target is not None:
        wanted = _find_all(case.request.target, partial(find_label, labels))
        sure = sure[:, list(wanted)].sum(-1)
    else:
        outside = [index for index, label in enumerate(labels) if label.upper() == "O"]
        sure[:, outside] -= 1  # chosen only if there is nothing else
        sure = sure.max(-1).values
    sure = sure.masked_fill(torch.tensor(case.tokens.special, device=sure.device), -2.0)
    position = int(sure.argmax())
    return position, (f"read at token {position}, {case.tokens[position]!r}: the most certain one",)


def _masked_token(case: TargetCase) -> Resolved:
    """The token at the mask, or at another position if the user gave one."""
    return _token_at(case, *_position_of_mask(case))


def _letter(case: TargetCase) -> Resolved:
    """The letter heard at one frame; by default the most certain one that is not the blank."""
    check_letters(case.subject, len(case.logits), len(case.tokens))
    given, position = case.request.target, case.request.position
    if position is not None:
        return _token_at(case, *find_position(position, case.tokens))
    wanted = None if given is None else list(_find_all(given, partial(_one_token, case)))
    blank = getattr(case.subject.config, "pad_token_id", None)
    return _token_at(case, *surest_frame(case.logits, case.tokens, wanted, blank))


def _token_at(case: TargetCase, position: int, notes: tuple[str, ...]) -> Resolved:
    row, name = case.logits[position], partial(_show_id, case.subject.tokenizer)
    place, find = position - len(case.tokens), partial(_one_token, case)
    target = _target_at(case, place, int(row.argmax()), name, find)
    return replace(target, position=position), best_choices(row, "softmax", name), notes


def _position_of_mask(case: TargetCase) -> tuple[int, tuple[str, ...]]:
    if case.request.position is not None:
        return find_position(case.request.position, case.tokens)
    mask = case.subject.tokenizer.mask_token
    masks = [i for i, text in enumerate(case.tokens) if text == mask]
    if not masks:
        raise UsageError(f"the text has no {mask} to fill in: add one, or give a position")
    return masks[0], (f"read at the first of {len(masks)} masks",) if len(masks) > 1 else ()


def _next_tokens(case: TargetCase) -> Resolved:
    """The next token, or several next tokens: the sum of their log-probabilities."""
    count, name = max(len(case.chain), 1), partial(_show_id, case.subject.tokenizer)
    row = case.logits[-count]
    if count == 1:
        own = replace(case.request, target=case.chain[0]) if case.chain else case.request
        known, best = replace(case, request=own), int(row.argmax())
        target = _target_at(known, -1, best, name, partial(_one_token, case))
        return target, best_choices(row, "softmax", name), ()
    shown = show_ids(case.subject.tokenizer, case.chain)
    if case.request.contrast is not None:
        raise UsageError(f"a contrast needs a target of one token, and {shown!r} is {count}")
    picks = tuple((place, token) for place, token in zip(range(-count, 0), case.chain, strict=True))
    target = Target(shown, picks, chained=True)
    notes = (f"the sum of the log-probabilities of {count} tokens",)
    return target, best_choices(row, "softmax", name), notes


def find_label(labels: Sequence[str], given: Any) -> int:
    """The index of a class, given by number or by name in any case."""
    if is_number(given):
        if not 0 <= given < len(labels):
            raise UsageError(f"unknown class {given}: this model has 0 to {len(labels) - 1}")
        return int(given)
    lowered = [label.lower() for label in labels]
    if str(given).lower() in lowered:
        return lowered.index(str(given).lower())
    if str(given).isdigit() and int(given) < len(labels):
        return int(given)
    raise UnknownNameError("label", str(given), labels)


def _one_token(case: TargetCase, given: Any) -> int:
    subject = case.subject
    if subject.task is not None and subject.task.name == "causal lm":
        written = chat_text(subject.tokenizer, case.text, case.request.chat)
        ids = following_ids(subject.tokenizer, case.tokens, given, written)
    else:
        ids = token_ids(subject.tokenizer, given, written=subject.has_decoder)
    if len(ids) != 1:
        raise UsageError(f"{given!r} is {len(ids)} tokens, but one is needed here")
    return ids[0]


def _show_id(tokenizer: Any, index: int) -> str:
    return show_ids(tokenizer, [index])


def _answer(case: TargetCase) -> Resolved:
    """An answer in the context, given by its text; by default the most likely one."""
    inside = _inside_context(case.tokens)
    best = _best_span(case.logits, inside)
    prediction = (
        {"label": _text_of(case.tokens, best), "probability": _probability(case.logits, best)},
    )
    asked, other = case.request.target, case.request.contrast
    span = best if asked is None else _find(case.tokens, inside, asked)
    contrast: dict[str, Any] = {}
    if other is not None:
        contrast = {
            "contrast": _picks(_find(case.tokens, inside, other)),
            "contrast_name": str(other),
        }
    return Target(_text_of(case.tokens, span), _picks(span), **contrast), prediction, ()


def _inside_context(tokens: Tokens) -> list[int]:
    marks = zip(tokens.segments, tokens.special, strict=True)
    inside = [i for i, (name, special) in enumerate(marks) if name == "context" and not special]
    if not inside:
        raise UsageError("nothing is left of the context, so there is no answer to find")
    return inside


def _best_span(logits: Tensor, inside: Sequence[int]) -> tuple[int, int]:
    index = torch.tensor(list(inside), device=logits.device)
    total = logits[0, index][:, None] + logits[1, index][None, :]
    allowed = torch.ones_like(total, dtype=torch.bool).triu().tril(LONGEST_ANSWER - 1)
    flat = int(total.masked_fill(~allowed, float("-inf")).argmax())
    return inside[flat // len(inside)], inside[flat % len(inside)]


def _probability(logits: Tensor, span: tuple[int, int]) -> float:
    table = logits.float().log_softmax(-1)
    return float((table[0, span[0]] + table[1, span[1]]).exp())


def _picks(span: tuple[int, int]) -> tuple[Pick, ...]:
    return ((-2, span[0]), (-1, span[1]))


def _text_of(tokens: Tokens, span: tuple[int, int]) -> str:
    first, last = tokens.offsets[span[0]], tokens.offsets[span[1]]
    if first is None or last is None:
        return " ".join(tokens[span[0] : span[1] + 1])
    return tokens.sources["context"][first[0] : last[1]].strip()


def _find(tokens: Tokens, inside: Sequence[int], answer: Any) -> tuple[int, int]:
    start = tokens.sources["context"].find(answer) if isinstance(answer, str) and answer else -1
    if start < 0:
        raise UsageError(f"the answer {answer!r} is not in the context")
    stop = start + len(answer)
    touched = [i for i in inside if (o := tokens.offsets[i]) and o[0] < stop and start < o[1]]
    if not touched:
        raise UsageError(f"the answer {answer!r} was cut from the context")
    return touched[0], touched[-1]


_RESOLVERS: dict[str, Resolver] = {
    "sequence classification": _classes,
    "next sentence": _classes,
    "image classification": _classes,
    "sound classification": _classes,
    "speech recognition": _letter,
    "image and text": _classes,
    "visual question answering": _classes,
    "token classification": _classes_of_a_token,
    "masked lm": _masked_token,
    "causal lm": _next_tokens,
    "sequence to sequence": _next_tokens,
    "question answering": _answer,
    "similarity": _classes,
}
OF_CLASSES = frozenset(name for name, each in _RESOLVERS.items() if each is _classes)  # tasks
