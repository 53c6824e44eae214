"""Rules for relevance as input × gradient: AttnLRP, and CP-LRP, which stops at the softmax.

With these backward passes, an activation times its gradient is its relevance.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from attlas.models.relevance import operations
from attlas.models.relevance.backward_steps import Scale, Share, is_scaled, layer_norm
from attlas.models.relevance.rules import (
    Function,
    RelevanceRules,
    Rule,
    applied,
    flatten,
    is_activation,
    rules_by_function,
)


class AttnRules(RelevanceRules):
    """AttnLRP: factors share the relevance of a product, and the scale of a norm is constant.

    `leaves` returns the token vectors that have entered so far. `constants` are vectors that were
    added to them or put beside them, each with the number of leaves before it.
    """

    def __init__(self, leaves: Callable[[], Sequence[Tensor]]) -> None:
        super().__init__()
        self._leaves = leaves
        self.constants: list[tuple[int, Tensor]] = []

    def table(self) -> Mapping[Function, Rule]:
        """The rules of AttnLRP; other functions have their normal gradient."""
        return rules_by_function(
            {
                operations.MULTIPLY: self.multiply,
                operations.CONTRACT: self.contract,
                operations.LINEAR: self.linear,
                operations.ADD_MULTIPLIED: self.add_multiplied,
                operations.DIVIDE: self.divide,
                operations.DIVIDE_INTO: self.constant,
                operations.INVERT: self.constant,
                operations.ADD: self.add,
                operations.JOIN: self.join,
                operations.SOFTMAX: self.softmax,
                operations.ATTEND: self.attend,
                operations.LAYER_NORM: self.layer_norm,
                operations.RMS_NORM: self.rms_norm,
                operations.POWER: self.power,
                operations.ELEMENTWISE: self.elementwise,
            }
        )

    def pass_activation(self, given: Tensor, result: Tensor) -> Tensor:
        """All relevance of an elementwise function goes to its input."""
        return applied(Scale, given, result)

    def multiply(self, func: Function, first: Any, second: Any, **kwargs: Any) -> Any:
        """The factors of a product share its relevance equally."""
        return self.contract(func, first, second, **kwargs)

    def contract(self, func: Function, *args: Any, **kwargs: Any) -> Any:
        """The activations among the operands of a contraction share its relevance equally."""
        operands = sum(map(is_activation, flatten([*args, *kwargs.values()])))
        result = func(*args, **kwargs)
        return applied(Share, result, operands) if operands > 1 else result

    def linear(self, func: Function, *args: Any, **kwargs: Any) -> Any:
        """A layer is a product if its weight is an activation."""
        return self.contract(func, *args, **kwargs)

    def add_multiplied(
        self, func: Function, added: Any, first: Any, second: Any, *, beta: Any = 1, alpha: Any = 1
    ) -> Any:
        """A product plus something: the factors share the product's relevance."""
        if is_activation(first) and is_activation(second):
            first, second = applied(Share, first, 2), applied(Share, second, 2)
        return func(added, first, second, beta=beta, alpha=alpha)

    def divide(self, func: Function, above: Any, below: Any, **kwargs: Any) -> Any:
        """The divisor is held constant."""
        return func(above, below.detach() if is_activation(below) else below, **kwargs)

    def add(self, func: Function, first: Any, second: Any, **kwargs: Any) -> Any:
        """A sum keeps its gradient; vectors that are added to token vectors are counted."""
        if kwargs or is_activation(first) == is_activation(second):
            return func(first, second, **kwargs)
        active, other = (first, second) if is_activation(first) else (second, first)
        return active + self.count(other, active)

    def count(self, added: Any, active: Tensor) -> Any:
        """The addend, as a leaf of the graph if it has a vector for each token."""
        if not isinstance(added, Tensor) or not self._is_stream(active):
            return added
        if added.ndim < 2 or added.shape[-2:] != active.shape[-2:]:
            return added
        return self.add_constant(added.expand(active.shape))

    def _is_stream(self, active: Tensor) -> bool:
        """Whether this looks like token vectors, `[batch, token, feature]`."""
        leaves = self._leaves()
        return bool(leaves) and active.ndim == 3 and len(active) == len(leaves[-1])

    def add_constant(self, vectors: Tensor) -> Tensor:
        """Make vectors a leaf of the graph, and remember them."""
        leaf = vectors.detach().requires_grad_()
        self.constants.append((len(self._leaves()), leaf))
        return leaf

    def join(self, func: Function, tensors: Sequence[Tensor], dim: Any = 0, **kwargs: Any) -> Any:
        """Vectors that are put beside token vectors are counted too."""
        result = func(tensors, dim, **kwargs)
        if dim not in (1, -2) or all(map(is_activation, tensors)) or not self._is_stream(result):
            return result
        beside = [torch.zeros_like(each) if is_activation(each) else each for each in tensors]
        active = [each if is_activation(each) else torch.zeros_like(each) for each in tensors]
        return func(active, dim) + self.add_constant(func(beside, dim))

    def softmax(self, func: Function, *args: Any, **kwargs: Any) -> Any:
        """The softmax keeps its gradient."""
        return func(*args, **kwargs)

    def attend(
        self, func: Function, query: Tensor, key: Tensor, value: Tensor, *args: Any, **kwargs: Any
    ) -> Any:
        """Fused attention is two products; queries and keys are shared twice, values once."""
        shared = (applied(Share, query, 4), applied(Share, key, 4), applied(Share, value, 2))
        return func(*shared, *args, **kwargs)

    def layer_norm(self, func: Function, *args: Any, **kwargs: Any) -> Any:
        """The standard deviation is held constant."""
        return layer_norm(*args, **kwargs)

    def rms_norm(
        self,
        func: Function,
        given: Tensor,
        shape: Sequence[int],
        weight: Tensor | None = None,
        eps: float | None = None,
    ) -> Any:
        """The root mean square is held constant."""
        if eps is None:
            eps = torch.finfo(given.dtype).eps
        axes = tuple(range(-len(shape), 0))
        scaled = given * given.detach().square().mean(dim=axes, keepdim=True).add(eps).rsqrt()
        return scaled if weight is None else scaled * weight


class ConservativeRules(AttnRules):
    """CP-LRP: attention weights and gates are held constant, which conserves relevance."""

    def softmax(self, func: Function, *args: Any, **kwargs: Any) -> Any:
        """No relevance passes the softmax."""
        return self.constant(func, *args, **kwargs)

    def attend(
        self, func: Function, query: Tensor, key: Tensor, value: Tensor, *args: Any, **kwargs: Any
    ) -> Any:
        """Fused attention: relevance flows through the values only."""
        return func(query.detach(), key.detach(), value, *args, **kwargs)

    def multiply(self, func: Function, first: Any, second: Any, **kwargs: Any) -> Any:
        """All relevance of a gated product goes to what is gated."""
        if is_activation(first) and is_activation(second) and is_scaled(first) != is_scaled(second):
            first, second = (each.detach() if is_scaled(each) else each for each in (first, second))
        return super().multiply(func, first, second, **kwargs)


class CountingRules(ConservativeRules):
    """CP-LRP that also counts the relevance of biases, so that all relevance is accounted for."""

    def table(self) -> Mapping[Function, Rule]:
        """The rules of CP-LRP, and one for convolutions, which have a bias."""
        return {**super().table(), **rules_by_function({operations.CONVOLVE: self.linear})}

    def linear(
        self, func: Function, given: Any, weight: Any, bias: Any = None, *args: Any, **kwargs: Any
    ) -> Any:
        """Split a layer into its product and its bias."""
        result = self.contract(func, given, weight, None, *args, **kwargs)
        if bias is None:
            return result
        return result + self.add_constant(bias.reshape(-1, *[1] * (weight.ndim - 2)))

    def add_multiplied(self, func: Function, added: Any, *args: Any, **kwargs: Any) -> Any:
        """Split into the product and the addend."""
        leaf = added if is_activation(added) else self.add_constant(added)
        return super().add_multiplied(func, leaf, *args, **kwargs)

    def layer_norm(
        self,
        func: Function,
        given: Tensor,
        normalized_shape: Sequence[int],
        weight: Tensor | None = None,
        bias: Tensor | None = None,
        *args: Any,
        **kwargs: Any,
    ) -> Any:
        """Split a norm into its scaling and its bias."""
        result = layer_norm(given, normalized_shape, weight, None, *args, **kwargs)
        return result if bias is None else result + self.add_constant(bias)

    def count(self, added: Any, active: Tensor) -> Any:
        """Count every tensor that is added."""
        return self.add_constant(added) if isinstance(added, Tensor) else added
