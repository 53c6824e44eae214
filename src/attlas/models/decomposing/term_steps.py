"""Steps of a model's computation, applied to the terms of a tensor.

Terms are `[term, …]`: one for each token, and a last one for what belongs to no token. They sum to
the tensor. A linear step is applied to each term separately.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from attlas.models.decomposing.operations import (
    LIKE_ANOTHER,
    MATRICES,
    SHAPED_ALIKE,
    TAKEN_AWAY_FROM,
    TAKING_AWAY,
)
from attlas.models.decomposing.terms import wide_type

SAME_SHAPES: dict[str, Callable[..., Any]] = {"view": Tensor.reshape, "view_as": Tensor.reshape_as}


def read_by(name: str, args: Sequence[Any], kwargs: dict[str, Any]) -> Sequence[Any]:
    """The arguments whose numbers an operation reads; of others it takes the shape or the type."""
    if name in SHAPED_ALIKE:
        return ()
    return args[:1] if name in LIKE_ANOTHER else (*args, *kwargs.values())


def tensors_in(given: Any) -> Iterator[Tensor]:
    """The tensors among arguments, including those in lists."""
    for each in given:
        if isinstance(each, Tensor):
            yield each
        elif isinstance(each, (list, tuple)):
            yield from tensors_in(each)


def for_each_term(
    step: Callable[..., Any], args: Sequence[Any], kwargs: dict[str, Any], tracked: Sequence[int]
) -> Callable[[Sequence[Tensor]], Any]:
    """A linear step as a function of the terms of the tracked tensors, which are told by id.

    It keeps none of these tensors alive: what it makes lives as long as they might.
    """
    wide = next(
        wide_type(each) for each in tensors_in((*args, *kwargs.values())) if id(each) in tracked
    )
    held = [_exchange(each, tracked, wide) for each in args]
    named = {name: _exchange(each, tracked, wide) for name, each in kwargs.items()}
    # A view asks for the memory of the model's own tensor, which terms need not share.
    step = SAME_SHAPES.get(getattr(step, "__name__", ""), step)

    def take(*slices: Tensor) -> Any:
        put = {name: _put_back(each, slices) for name, each in named.items()}
        return step(*(_put_back(each, slices) for each in held), **put)

    def of_terms(terms: Sequence[Tensor]) -> Any:
        found, kind = torch.vmap(take)(*terms), terms[0].dtype
        return found.to(kind) if isinstance(found, Tensor) else [each.to(kind) for each in found]

    return of_terms


class _Place:
    """Marks where a term goes among the arguments of a step."""

    def __init__(self, number: int) -> None:
        self.number = number


# Functions of their own: one that refers to itself from inside another is freed only by the
# collector, with the tensors that it holds.
def _exchange(given: Any, tracked: Sequence[int], wide: torch.dtype) -> Any:
    """The argument with places for terms in it."""
    if isinstance(given, Tensor) and id(given) in tracked:
        return _Place(tracked.index(id(given)))
    if isinstance(given, Tensor) and given.is_floating_point():
        return given.detach().to(wide)
    if type(given) in (list, tuple):
        return type(given)(_exchange(each, tracked, wide) for each in given)
    return given


def _put_back(given: Any, slices: Sequence[Tensor]) -> Any:
    """The argument with a slice of the batch in each place."""
    if isinstance(given, _Place):
        return slices[given.number]
    if type(given) in (list, tuple):
        return type(given)(_put_back(each, slices) for each in given)
    return given


def project(terms: Tensor, weight: Tensor) -> Tensor:
    """Terms through a matrix `[out, in]`."""
    return functional.linear(terms, weight.detach().to(terms))


def is_plain_product(name: str, args: Sequence[Any]) -> bool:
    """Whether a product of two matrices is asked for, or of several of the same shape."""
    return name in MATRICES and len(args) == 2 and args[0].ndim == args[1].ndim > 2


def mix(weights: Tensor, terms: Tensor) -> Tensor:
    """Terms `[term, …, key, feature]` mixed by weights `[…, query, key]`, as one product."""
    # By vmap the weights would be copied for each term.
    found: Tensor = torch.einsum("...qk,t...kf->t...qf", weights.detach().to(terms), terms)
    return found


def mix_own(weights: Tensor, pair: Tensor, part: slice) -> Tensor:
    """A part of the terms of values `[…, key, feature]`, each in its own place, mixed by weights.

    `pair` has the values that belong to the token there, and those that belong to none. The term
    of a token is its value times its weight for each query: there is nothing to sum.
    """
    values, of_none = pair
    shares = weights.detach().to(pair)
    tokens = slice(part.start, min(part.stop, values.shape[-2]))
    factors = shares[..., tokens].movedim(-1, 0)  # [token, …, query]
    own = values[..., tokens, :].movedim(-2, 0)  # [token, …, feature]
    lead = factors.shape[1:-2]
    # The queries stand before the heads, as models put them next: then nothing has to be moved.
    shape = (part.stop - part.start, *lead, factors.shape[-1], *own.shape[len(lead) + 1 :])
    found: Tensor = values.new_empty(shape)
    torch.mul(factors.transpose(-1, -2).unsqueeze(-1), own.unsqueeze(-3), out=found[: len(factors)])
    found = found.transpose(-3, -2)
    if len(factors) < len(found):
        found[-1] = shares @ of_none
    return found


def project_mixed(weights: Tensor, pair: Tensor, matrix: Tensor, part: slice) -> Tensor:
    """A part of the terms of `mix_own`, the heads of a query side by side, through a matrix.

    Values go through the slices of their heads before they are mixed: of these there are as many
    as tokens, and of mixed ones as many as pairs.
    """
    values, of_none = pair
    shares, heads = weights.detach().to(pair), weights.shape[1]
    tokens = slice(part.start, min(part.stop, values.shape[-2]))
    slices = matrix.detach().to(pair).unflatten(-1, (heads, -1))
    sent = torch.einsum("bhtw,fhw->tbhf", values[:, :, tokens], slices)
    factors = shares[..., tokens].permute(3, 0, 2, 1)  # [token, batch, query, head]
    found: Tensor = values.new_empty(part.stop - part.start, *factors.shape[1:3], sent.shape[-1])
    torch.matmul(factors, sent, out=found[: len(sent)])
    if len(sent) < len(found):
        rest = (shares @ of_none).transpose(1, 2).flatten(2)
        found[-1] = functional.linear(rest, matrix.detach().to(pair))
    return found


def project_groups(terms: Tensor, weights: Tensor, ends: Tensor) -> Tensor:
    """Terms `[term, row, in]` through one matrix `[in, out]` for each group of rows."""
    found = terms.new_zeros(*terms.shape[:2], weights.shape[-1])
    start = 0
    for weight, end in zip(weights.detach(), ends.tolist(), strict=True):
        found[:, start:end] = terms[:, start:end] @ weight.to(terms)
        start = end
    return found


def put(name: str, into: Tensor, args: Sequence[Any], pair: Sequence[Tensor | None]) -> Tensor:
    """Terms of a tensor after another, the last of `args`, was added to places of it or written.

    `pair` has the terms of the two, or None where nothing belongs to a token.
    """
    like = next(terms for terms in pair if terms is not None)
    whole, part = (
        of_no_token(torch.as_tensor(tensor), like) if terms is None else terms
        for tensor, terms in zip((into, args[-1]), pair, strict=True)
    )
    found = whole.clone()
    for old, new in zip(found, part, strict=True):
        if name == "__setitem__":
            old[args[0]] = new
        else:
            old.index_add_(args[0], args[1], new)
    return found


def of_no_token(tensor: Tensor, like: Tensor) -> Tensor:
    """The terms of a tensor that belongs to no token."""
    terms = like.new_zeros(len(like), *tensor.shape)
    terms[-1] = tensor.detach()
    return terms


def norm_factor(whole: Tensor, gain: Tensor | None, eps: float, axes: int, centred: bool) -> Tensor:
    """What a norm multiplies each number by, with the spread of the whole tensor held fixed."""
    over = tuple(range(-axes, 0))
    if centred:
        whole = whole - whole.mean(dim=over, keepdim=True)
    factor = (whole.square().mean(dim=over, keepdim=True) + eps).rsqrt()
    return factor if gain is None else factor * gain.detach().to(factor)


def scale(terms: Tensor, factor: Tensor, axes: int, centred: bool) -> Tensor:
    """Terms through a norm, without its bias."""
    if not centred:
        return terms * factor
    # One new tensor: beside a matrix product, each further one costs as much again.
    return (terms - terms.mean(dim=tuple(range(-axes, 0)), keepdim=True)).mul_(factor)


def product_of_terms(one: Tensor, other: Tensor, first: Tensor, second: Tensor) -> Tensor:
    """Terms of a product whose factors both have terms: half by each factor's terms."""
    found: Tensor = torch.vmap(lambda a, b: (a * other + one * b) / 2)(first, second)
    return found


def scaled(terms: Tensor, factor: Tensor | int | float, divides: bool) -> Tensor:
    """Terms times a factor, or divided by it."""
    if not isinstance(factor, Tensor) or factor.ndim < terms.ndim:
        return terms / factor if divides else terms * factor
    found: Tensor = torch.vmap(lambda term: term / factor if divides else term * factor)(terms)
    return found


def summed(first: Tensor, second: Tensor, signs: Sequence[float]) -> Tensor:
    """The sum of the terms of two tensors, each times its sign."""
    one, other = signed(first, signs[0]), signed(second, signs[1])
    if one.ndim == other.ndim:
        return one + other
    found: Tensor = torch.vmap(torch.add)(one, other)
    return found


def signed(terms: Tensor, sign: float) -> Tensor:
    """Terms times a sign; the same ones if it changes nothing."""
    return terms if sign == 1 else terms * sign


def held(factor: Any) -> Any:
    """A factor as it is now, in the precision of terms: the model may go on and change it."""
    if not isinstance(factor, Tensor):
        return factor
    return factor.detach().to(wide_type(factor), copy=True)


def signs_of(name: str, alpha: int | float) -> tuple[float, float]:
    """The factors of the two operands of a sum or difference."""
    if name in TAKEN_AWAY_FROM:
        return -float(alpha), 1.0
    return 1.0, -float(alpha) if name in TAKING_AWAY else float(alpha)


def as_bias(added: Tensor | int | float | None, sign: float = 1.0) -> Tensor | None:
    """An addend without terms as a tensor; None if there is none."""
    if added is None:
        return None
    return sign * added.detach() if isinstance(added, Tensor) else torch.tensor(sign * added)
