"""Steps of a model's computation, by what they do to terms of what they are given.

Terms are `[term, …]`: a tensor of the model for each token, and a last one for what belongs to no
token; together they are the tensor itself. A step that is linear is taken for each term alone.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

SUMS = {"add", "add_", "__add__", "__radd__", "__iadd__"}
TAKING_AWAY = {"sub", "sub_", "__sub__", "__isub__"}
TAKEN_AWAY_FROM = {"rsub", "__rsub__"}
ADDING = SUMS | TAKING_AWAY | TAKEN_AWAY_FROM
TIMES = {"mul", "mul_", "__mul__", "__rmul__", "__imul__", "multiply"}
OVER = {"div", "div_", "__truediv__", "__div__", "__itruediv__", "divide", "true_divide"}
PRODUCTS = TIMES | OVER
MIXING = {"matmul", "__matmul__", "bmm", "einsum"}
# Zero at zero, so that a straight line through the origin meets them.
ACTIVATIONS = {"gelu", "silu", "relu", "tanh", "mish", "leaky_relu", "elu", "selu", "celu", "relu6"}
# Each of these commutes with a sum: shapes, copies, selections, means.
LINEAR = {
    *("view", "reshape", "transpose", "permute", "contiguous", "flatten", "unflatten", "clone"),
    *(
        "broadcast_to",
        "unsqueeze",
        "squeeze",
        "expand",
        "expand_as",
        "view_as",
        "repeat",
        "repeat_interleave",
    ),
    *("__getitem__", "select", "narrow", "split", "chunk", "unbind", "index_select", "movedim"),
    *("cat", "concat", "concatenate", "stack", "roll", "flip", "neg", "__neg__", "sum", "mean"),
    *("to", "type_as", "float", "double", "half", "bfloat16", "detach", "diagonal", "t"),
}
SEVERAL = {"split", "chunk", "unbind"}  # that give several tensors
UNCHANGING = {"dropout", "dropout_", "requires_grad_"}  # a borrowed model is in evaluation mode


def tensors_in(given: Any) -> Iterator[Tensor]:
    """The tensors among arguments, also those in lists."""
    for each in given:
        if isinstance(each, Tensor):
            yield each
        elif isinstance(each, (list, tuple)):
            yield from tensors_in(each)


def each_term(
    step: Callable[..., Any], args: Sequence[Any], kwargs: dict[str, Any], terms: dict[int, Tensor]
) -> Any:
    """A linear step taken for each term alone; `terms` has those of arguments, by their id."""
    wide = next(iter(terms.values())).dtype
    batched: list[Tensor] = []

    def exchange(given: Any) -> Any:
        if isinstance(given, Tensor) and id(given) in terms:
            batched.append(terms[id(given)])
            return _Place(len(batched) - 1)
        if isinstance(given, Tensor) and given.is_floating_point():
            return given.detach().to(wide)
        return type(given)(map(exchange, given)) if type(given) in (list, tuple) else given

    held = [exchange(each) for each in args]
    named = {name: exchange(each) for name, each in kwargs.items()}

    def take(*slices: Tensor) -> Any:
        def put_back(given: Any) -> Any:
            if isinstance(given, _Place):
                return slices[given.number]
            return type(given)(map(put_back, given)) if type(given) in (list, tuple) else given

        put = {name: put_back(each) for name, each in named.items()}
        return step(*map(put_back, held), **put)

    found = torch.vmap(take)(*batched)
    if isinstance(found, Tensor):
        return found.to(wide)
    return [each.to(wide) for each in found]


class _Place:
    """Where among the arguments of a step a term goes."""

    def __init__(self, number: int) -> None:
        self.number = number


def project(terms: Tensor, weight: Tensor) -> Tensor:
    """Terms through a matrix `[out, in]`."""
    return functional.linear(terms, weight.detach().to(terms))


def scale(
    terms: Tensor, whole: Tensor, gain: Tensor | None, eps: float, axes: int, centred: bool
) -> Tensor:
    """Terms through a norm, its spread being that of the whole; without what it adds."""
    over = tuple(range(-axes, 0))
    wide = whole.detach().to(terms)
    if centred:
        terms = terms - terms.mean(dim=over, keepdim=True)
        wide = wide - wide.mean(dim=over, keepdim=True)
    scaled = terms * (wide.square().mean(dim=over, keepdim=True) + eps).rsqrt()
    return scaled if gain is None else scaled * gain.detach().to(terms)


def activate(
    terms: Tensor, before: Tensor, after: Tensor, slope: Callable[[Tensor, Tensor], Tensor]
) -> Tensor:
    """Terms through an activation that is a factor for each number."""
    return terms * slope(before.detach().to(terms), after.detach().to(terms))


def product_of_terms(wholes: Sequence[Tensor], first: Tensor, second: Tensor) -> Tensor:
    """Terms of a product of two that have terms: half by the one's, half by the other's."""
    one, other = (whole.detach().to(first) for whole in wholes[:2])
    found: Tensor = torch.vmap(lambda a, b: (a * other + one * b) / 2)(first, second)
    return found


def scaled(terms: Tensor, factor: Tensor | int | float, divides: bool) -> Tensor:
    """Terms times a factor, or divided by it."""
    held = factor.detach().to(terms) if isinstance(factor, Tensor) else factor
    found: Tensor = torch.vmap(lambda term: term / held if divides else term * held)(terms)
    return found


def signs_of(name: str, alpha: int | float) -> tuple[float, float]:
    """The signs, and sizes, that the two terms of a sum are taken with."""
    if name in TAKEN_AWAY_FROM:
        return -float(alpha), 1.0
    return 1.0, -float(alpha) if name in TAKING_AWAY else float(alpha)


def as_bias(added: Tensor | int | float | None, sign: float = 1.0) -> Tensor | None:
    """What is added to terms, as a tensor; None where nothing is."""
    if added is None:
        return None
    return sign * added.detach() if isinstance(added, Tensor) else torch.tensor(sign * added)


def with_bias(
    terms: Tensor, bias: Tensor | None, share: Callable[[Tensor, Tensor], Tensor] | None
) -> Tensor:
    """Terms and what is added to their sum, shared out or left with no token.

    `share` gives each token's share, `[token, …, 1]`, from the terms of tokens and the bias; what
    it does not give away is left with no token. The terms are written over.
    """
    if bias is None:
        return terms
    shape = torch.broadcast_shapes(terms.shape[1:], bias.shape)
    if shape != terms.shape[1:]:
        terms = torch.vmap(lambda term: term.expand(shape))(terms).clone()
    added = bias.to(terms).expand(shape)
    if share is None:
        terms[-1] += added
        return terms
    shares = share(terms[:-1], added)
    terms[-1] += added * (1 - shares.sum(dim=0))
    terms[:-1].addcmul_(shares, added)
    return terms


def distance_from_sum(terms: Tensor, whole: Tensor) -> tuple[float, float]:
    """How far terms are from summing to the whole, and how large the largest number of them is."""
    wide = whole.detach().to(terms)
    size = max(float(wide.abs().max()), float(terms.abs().max()), 1e-30)
    return float((terms.sum(dim=0) - wide).abs().max()), size


def own_terms(stream: Tensor) -> Tensor:
    """A stream `[batch, token, feature]` before tokens have met: each is its own term."""
    wide = stream.detach() if stream.dtype == torch.float64 else stream.detach().float()
    length = wide.shape[1]
    terms = wide.new_zeros(length + 1, *wide.shape)
    places = torch.arange(length, device=wide.device)
    terms[places, :, places] = wide.transpose(0, 1)
    return terms
