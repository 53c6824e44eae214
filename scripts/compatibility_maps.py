"""The maps that the tap saw against those that transformers returns."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

import torch
from torch import Tensor

from attlas.models.tap.call import Call

TOLERANCE = 1e-6
Reading: TypeAlias = Callable[[Tensor, Tensor], Tensor]  # ours and theirs to what theirs should be


class WrongError(Exception):
    """A model was opened, but a comparison failed."""


def require(condition: Any, otherwise: str) -> None:
    """Raise an error with this text unless the condition holds."""
    if not condition:
        raise WrongError(otherwise)


def maps(eager: Callable[..., Any]) -> dict[str, list[Tensor]]:
    """The attention that transformers itself returns on eager, by its name, each list once."""
    try:
        output = eager(output_attentions=True)
    except (TypeError, NotImplementedError):
        return {}
    found: dict[str, list[Tensor]] = {}
    for name, value in sorted(output.items(), key=lambda item: len(item[0])):
        given = [each for each in flatten(value) if is_attention(each)]
        if name.endswith("attentions") and given and not _is_among(given, found.values()):
            found[name] = given
    return found


def _is_among(given: Sequence[Tensor], others: Any) -> bool:
    """Whether these maps were returned by another name too, as Moshi does."""
    return any(len(given) == len(each) and all(map(torch.equal, given, each)) for each in others)


def is_attention(given: Tensor) -> bool:
    """Whether rows are shares that sum to at most one; scores and linear states are not."""
    return given.ndim >= 3 and bool((given >= 0).all() and (given.sum(-1) <= 1 + 1e-4).all())


def flatten(value: Any) -> Iterator[Tensor]:
    """The tensors in tuples of tuples, and in outputs within an output."""
    if isinstance(value, Tensor):
        yield value
    elif isinstance(value, (tuple, list)):
        for each in value:
            yield from flatten(each)
    elif isinstance(value, Mapping):
        yield from flatten(list(value.values()))


def as_it_is(seen: Tensor, _returned: Tensor) -> Tensor:
    """Most families return the attention itself."""
    return seen


def laid_out(given: Tensor, shape: torch.Size) -> Tensor:
    """A returned map in the shape of one that was seen, if it is that in another layout.

    Swin has `[batch, head, window, query, key]` with the windows joined to the batch, SuperGlue
    `[batch, picture, head, query, key]`, others batch and head in one.
    """
    layouts = [given]
    if given.ndim == 5:
        layouts = [given.transpose(1, 2).flatten(0, 1), given.flatten(0, 1)]
    if given.ndim == 3 and given.shape[0] % shape[1] == 0:
        layouts = [given.unflatten(0, (-1, shape[1]))]
    return next((each for each in layouts if each.shape == shape), layouts[0])


def compare_maps(
    calls: Sequence[Call], given: dict[str, list[Tensor]], reading: Reading = as_it_is
) -> int:
    """The number of maps that agree; every returned map must have been seen, in the same order."""
    left = list(calls)
    for name in sorted(given, key=len, reverse=True):  # plain "attentions" takes what is left
        kind = name.removesuffix("attentions").rstrip("_")
        mine = [call for call in left if call.site.kind == kind] or left
        for call, weights in match(name, list(mine), given[name], reading):
            left.remove(call)
            apart = float((reading(call.weights, weights) - weights).abs().max())
            require(apart <= TOLERANCE, f"{name}: {apart:.1e} apart")
    return sum(len(each) for each in given.values())


def has_shape(given: Sequence[Tensor], calls: Sequence[Call]) -> bool:
    """Whether the first of these maps has the shape of one that was seen."""
    return any(call.weights.shape == given[0].shape for call in calls)


def is_returned(call: Call, given: Mapping[str, Sequence[Tensor]]) -> bool:
    """Whether maps of this call's kind are returned in the shape that was seen."""
    named = given.get(f"{call.site.kind}_attentions", given.get("attentions", ()))
    return any(each.shape == call.weights.shape for each in named)


def match(
    name: str, calls: Sequence[Call], given: Sequence[Tensor], reading: Reading
) -> list[tuple[Call, Tensor]]:
    """Pairs of a call and a returned map; if there are more calls, the nearest ones."""
    if len(calls) == len(given):
        pairs = [
            (call, laid_out(each, call.weights.shape))
            for call, each in zip(calls, given, strict=True)
        ]
    else:
        pairs, waiting = [], list(calls)
        for each in given:
            fitting = [(call, laid_out(each, call.weights.shape)) for call in waiting]
            alike = [(call, weights) for call, weights in fitting if _fits(call, weights)]
            require(alike, f"{len(calls)} {name} seen of {len(given)}")
            found = min(alike, key=lambda pair: float((pair[0].weights - pair[1]).abs().max()))
            del waiting[: waiting.index(found[0]) + 1]
            pairs.append(found)
    for call, weights in pairs:
        seen = reading(call.weights, weights)
        shapes = f"{tuple(call.weights.shape)} seen for {tuple(weights.shape)}"
        require(seen.shape == weights.shape, f"{name}: {shapes}")
    return pairs


def _fits(call: Call, weights: Tensor) -> bool:
    return call.weights.shape == weights.shape
