"""Steps of a model's computation, applied to the terms of a tensor.

Terms are `[term, …]`: one for each token, and a last one for what belongs to no token. They sum to
the tensor. A linear step is applied to each term separately.
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
MATRICES = {"matmul", "__matmul__", "bmm"}
MIXING = MATRICES | {"einsum"}
# Activations that are zero at zero, so that each output is its input times a factor.
ACTIVATIONS = {
    *("gelu", "silu", "relu", "tanh", "mish", "leaky_relu", "elu", "selu", "celu", "relu6"),
    *("clamp", "clip", "hardtanh"),
}
GATES = {"erf"}  # factors of an activation that is written out
# Operations that commute with a sum: shapes, copies, selections, means.
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
    *("to", "type", "type_as", "float", "double", "half", "bfloat16", "detach", "diagonal", "t"),
    *("unfold", "pad", "swapaxes", "swapdims", "ravel", "gather", "tile"),
}
# Operations that look at the shape of a tensor, not at its numbers.
SHAPED_ALIKE = {
    *("zeros_like", "ones_like", "empty_like", "full_like"),
    *("new_zeros", "new_ones", "new_empty", "new_full", "new_tensor"),
}
LIKE_ANOTHER = {"expand_as", "view_as", "reshape_as", "type_as", "to"}  # reads the first only
GROUPED = {"grouped_mm", "_grouped_mm", "grouped_mm_fallback"}  # one matrix for each group of rows
OF_ONE = {"layer_norm", "rms_norm"} | ACTIVATIONS | GROUPED
PUTTING = {"index_add", "index_add_", "__setitem__"}  # operations that put one tensor into another
SEVERAL = {"split", "chunk", "unbind"}  # operations that return several tensors
UNCHANGING = {"dropout", "dropout_", "requires_grad_"}  # the model is in evaluation mode


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


def each_term(
    step: Callable[..., Any], args: Sequence[Any], kwargs: dict[str, Any], terms: dict[int, Tensor]
) -> Any:
    """Apply a linear step to each term; `terms` has those of the arguments, by id."""
    wide = next(iter(terms.values())).dtype
    batched: list[Tensor] = []
    held = [_exchange(each, terms, batched) for each in args]
    named = {name: _exchange(each, terms, batched) for name, each in kwargs.items()}

    def take(*slices: Tensor) -> Any:
        put = {name: _put_back(each, slices) for name, each in named.items()}
        return step(*(_put_back(each, slices) for each in held), **put)

    found = torch.vmap(take)(*batched)
    if isinstance(found, Tensor):
        return found.to(wide)
    return [each.to(wide) for each in found]


class _Place:
    """Marks where a term goes among the arguments of a step."""

    def __init__(self, number: int) -> None:
        self.number = number


# Functions of their own: one that refers to itself from inside another is freed only by the
# collector, with the tensors that it holds.
def _exchange(given: Any, terms: dict[int, Tensor], batched: list[Tensor]) -> Any:
    """The argument with places for its terms, which are added to those in the batch."""
    if isinstance(given, Tensor) and id(given) in terms:
        batched.append(terms[id(given)])
        return _Place(len(batched) - 1)
    if isinstance(given, Tensor) and given.is_floating_point():
        return given.detach().to(next(iter(terms.values())).dtype)
    if type(given) in (list, tuple):
        return type(given)(_exchange(each, terms, batched) for each in given)
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


def scale(
    terms: Tensor, whole: Tensor, gain: Tensor | None, eps: float, axes: int, centred: bool
) -> Tensor:
    """Terms through a norm with the spread of the whole tensor, without the bias of the norm."""
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
    """Terms through an activation, which is a factor for each number."""
    return terms * slope(before.detach().to(terms), after.detach().to(terms))


def product_of_terms(wholes: Sequence[Tensor], first: Tensor, second: Tensor) -> Tensor:
    """Terms of a product whose factors both have terms: half by each factor's terms."""
    one, other = (whole.detach().to(first) for whole in wholes[:2])
    found: Tensor = torch.vmap(lambda a, b: (a * other + one * b) / 2)(first, second)
    return found


def scaled(terms: Tensor, factor: Tensor | int | float, divides: bool) -> Tensor:
    """Terms times a factor, or divided by it."""
    held = factor.detach().to(terms) if isinstance(factor, Tensor) else factor
    found: Tensor = torch.vmap(lambda term: term / held if divides else term * held)(terms)
    return found


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


def with_bias(
    terms: Tensor, bias: Tensor | None, share: Callable[[Tensor, Tensor], Tensor] | None
) -> Tensor:
    """Add a bias to terms: shared among the tokens, or to the last term.

    `share` returns the share of each token, `[token, …, 1]`, from the tokens' terms and the bias.
    What it does not give away goes to the last term. The terms are changed in place.
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
    """The distance of the sum of the terms from the whole, and the largest number in them."""
    wide = whole.detach().to(terms)
    size = max(float(wide.abs().max()), float(terms.abs().max()), 1e-30)
    return float((terms.sum(dim=0) - wide).abs().max()), size


def own_terms(stream: Tensor) -> Tensor:
    """The terms of hidden states `[batch, token, feature]` in which each token is its own term."""
    wide = stream.detach() if stream.dtype == torch.float64 else stream.detach().float()
    length = wide.shape[1]
    terms = wide.new_zeros(length + 1, *wide.shape)
    places = torch.arange(length, device=wide.device)
    terms[places, :, places] = wide.transpose(0, 1)
    return terms
