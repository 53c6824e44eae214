"""Rules for relevance as input × gradient: AttnLRP and, without the way by the softmax, CP-LRP.

With these backward passes, an activation times the gradient on it is its relevance.
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
    """AttnLRP: every product of activations is shared by its operands, norms are constants.

    `leaves` gives the vectors of tokens that have come in so far. `constants` are those that were
    added to them, or put beside them, each with how many leaves there were before it.
    """

    def __init__(self, leaves: Callable[[], Sequence[Tensor]]) -> None:
        super().__init__()
        self._leaves = leaves
        self.constants: list[tuple[int, Tensor]] = []

    def table(self) -> Mapping[Function, Rule]:
        """The rules of AttnLRP; what has none is differentiated as it is."""
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
        """A product is shared equally by its factors."""
        return self.contract(func, first, second, **kwargs)

    def contract(self, func: Function, *args: Any, **kwargs: Any) -> Any:
        """A contraction is shared equally by those of its operands that are activations."""
        parts = sum(map(is_activation, flatten([*args, *kwargs.values()])))
        result = func(*args, **kwargs)
        return applied(Share, result, parts) if parts > 1 else result

    def linear(self, func: Function, *args: Any, **kwargs: Any) -> Any:
        """A weight that is an activation makes a layer a product."""
        return self.contract(func, *args, **kwargs)

    def add_multiplied(
        self, func: Function, added: Any, first: Any, second: Any, *, beta: Any = 1, alpha: Any = 1
    ) -> Any:
        """A product with something added: the product is shared, the sum is not."""
        if is_activation(first) and is_activation(second):
            first, second = applied(Share, first, 2), applied(Share, second, 2)
        return func(added, first, second, beta=beta, alpha=alpha)

    def divide(self, func: Function, above: Any, below: Any, **kwargs: Any) -> Any:
        """What divides is held constant."""
        return func(above, below.detach() if is_activation(below) else below, **kwargs)

    def add(self, func: Function, first: Any, second: Any, **kwargs: Any) -> Any:
        """A sum is as it is; vectors that are added to those of tokens are counted."""
        if kwargs or is_activation(first) == is_activation(second):
            return func(first, second, **kwargs)
        active, other = (first, second) if is_activation(first) else (second, first)
        return active + self.count(other, active)

    def count(self, added: Any, active: Tensor) -> Any:
        """What is added, as a leaf of the graph if there is a vector of it for each token."""
        if not isinstance(added, Tensor) or not self._is_stream(active):
            return added
        if added.ndim < 2 or added.shape[-2:] != active.shape[-2:]:
            return added
        return self.write_down(added.expand(active.shape))

    def _is_stream(self, active: Tensor) -> bool:
        """Whether this looks like vectors of tokens: what has heads beside its rows does not."""
        leaves = self._leaves()
        return bool(leaves) and active.ndim == 3 and len(active) == len(leaves[-1])

    def write_down(self, vectors: Tensor) -> Tensor:
        """The vectors as a leaf of the graph, remembered."""
        leaf = vectors.detach().requires_grad_()
        self.constants.append((len(self._leaves()), leaf))
        return leaf

    def join(self, func: Function, tensors: Sequence[Tensor], dim: Any = 0, **kwargs: Any) -> Any:
        """Vectors that are put beside those of tokens are counted too."""
        result = func(tensors, dim, **kwargs)
        if dim not in (1, -2) or all(map(is_activation, tensors)) or not self._is_stream(result):
            return result
        beside = [torch.zeros_like(each) if is_activation(each) else each for each in tensors]
        active = [each if is_activation(each) else torch.zeros_like(each) for each in tensors]
        return func(active, dim) + self.write_down(func(beside, dim))

    def softmax(self, func: Function, *args: Any, **kwargs: Any) -> Any:
        """The softmax to first order."""
        return func(*args, **kwargs)

    def attend(
        self, func: Function, query: Tensor, key: Tensor, value: Tensor, *args: Any, **kwargs: Any
    ) -> Any:
        """Fused attention: two products, the first of them seen through both."""
        shared = (applied(Share, query, 4), applied(Share, key, 4), applied(Share, value, 2))
        return func(*shared, *args, **kwargs)

    def layer_norm(self, func: Function, *args: Any, **kwargs: Any) -> Any:
        """The deviation is held constant."""
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
    """CP-LRP: attention is a constant, and so is what gates; what comes in goes out."""

    def softmax(self, func: Function, *args: Any, **kwargs: Any) -> Any:
        """No relevance by the softmax."""
        return self.constant(func, *args, **kwargs)

    def attend(
        self, func: Function, query: Tensor, key: Tensor, value: Tensor, *args: Any, **kwargs: Any
    ) -> Any:
        """Fused attention: relevance by the values alone."""
        return func(query.detach(), key.detach(), value, *args, **kwargs)

    def multiply(self, func: Function, first: Any, second: Any, **kwargs: Any) -> Any:
        """Of a gated product, all relevance goes to what is gated."""
        if is_activation(first) and is_activation(second) and is_scaled(first) != is_scaled(second):
            first, second = (each.detach() if is_scaled(each) else each for each in (first, second))
        return super().multiply(func, first, second, **kwargs)


class CountingRules(ConservativeRules):
    """CP-LRP that also counts what goes to the biases: nothing of the output is left over."""

    def table(self) -> Mapping[Function, Rule]:
        """Those of CP-LRP, and of what has a bias."""
        return {**super().table(), **rules_by_function({operations.CONVOLVE: self.linear})}

    def linear(
        self, func: Function, given: Any, weight: Any, bias: Any = None, *args: Any, **kwargs: Any
    ) -> Any:
        """The layer without its bias, and the bias."""
        result = self.contract(func, given, weight, None, *args, **kwargs)
        if bias is None:
            return result
        return result + self.write_down(bias.reshape(-1, *[1] * (weight.ndim - 2)))

    def add_multiplied(self, func: Function, added: Any, *args: Any, **kwargs: Any) -> Any:
        """The product, and what is added."""
        leaf = added if is_activation(added) else self.write_down(added)
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
        """The norm without its bias, and the bias."""
        result = layer_norm(given, normalized_shape, weight, None, *args, **kwargs)
        return result if bias is None else result + self.write_down(bias)

    def count(self, added: Any, active: Tensor) -> Any:
        """All tensors that are added."""
        return self.write_down(added) if isinstance(added, Tensor) else added
