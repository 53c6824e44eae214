"""Targets of answer-finders: the start and the end of an answer in the context."""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from attlas.errors import UsageError
from attlas.models.asking.target_case import Resolved, TargetCase
from attlas.models.encoding.target import Pick, Target
from attlas.tokens import Tokens

LONGEST_ANSWER = 30


def find_answer(case: TargetCase) -> Resolved:
    """The answer asked for, by its text, or the one the model likes best."""
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
        raise UsageError(f"the answer {answer!r} does not stand in the context")
    stop = start + len(answer)
    touched = [i for i in inside if (o := tokens.offsets[i]) and o[0] < stop and start < o[1]]
    if not touched:
        raise UsageError(f"the answer {answer!r} was cut from the context")
    return touched[0], touched[-1]
