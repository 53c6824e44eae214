"""Groups of torch functions that share a relevance rule."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

Function = Callable[..., Any]

MULTIPLY: frozenset[Function] = frozenset({torch.mul, torch.multiply, Tensor.mul, Tensor.multiply})
CONTRACT: frozenset[Function] = frozenset(
    {
        *(torch.matmul, torch.bmm, torch.mm, torch.mv, torch.einsum, torch.inner),
        *(Tensor.matmul, Tensor.bmm, Tensor.mm, Tensor.mv, Tensor.__rmatmul__),
        # For experts; not every version of torch has both.
        *(getattr(functional, "grouped_mm", torch.mm), getattr(torch, "_grouped_mm", torch.mm)),
    }
)
LINEAR: frozenset[Function] = frozenset({functional.linear})
ADD_MULTIPLIED: frozenset[Function] = frozenset(
    {torch.addmm, Tensor.addmm, torch.baddbmm, Tensor.baddbmm}
)
CONVOLVE: frozenset[Function] = frozenset({functional.conv1d, functional.conv2d})
DIVIDE: frozenset[Function] = frozenset(
    {
        *(torch.div, torch.divide, torch.true_divide),
        *(Tensor.div, Tensor.divide, Tensor.true_divide),
    }
)
DIVIDE_INTO: frozenset[Function] = frozenset({Tensor.__rtruediv__, Tensor.__rdiv__})
ADD: frozenset[Function] = frozenset({torch.add, Tensor.add})
SUBTRACT: frozenset[Function] = frozenset({torch.sub, torch.subtract, Tensor.sub, Tensor.subtract})
SUBTRACT_FROM: frozenset[Function] = frozenset({torch.rsub, Tensor.__rsub__})
NEGATE: frozenset[Function] = frozenset({torch.neg, torch.negative, Tensor.neg, Tensor.negative})
SUM: frozenset[Function] = frozenset({torch.sum, torch.mean, Tensor.sum, Tensor.mean})
JOIN: frozenset[Function] = frozenset({torch.cat, torch.concat, torch.concatenate})
SOFTMAX: frozenset[Function] = frozenset({torch.softmax, functional.softmax, Tensor.softmax})
ATTEND: frozenset[Function] = frozenset({functional.scaled_dot_product_attention})
LAYER_NORM: frozenset[Function] = frozenset({functional.layer_norm, torch.layer_norm})
RMS_NORM: frozenset[Function] = frozenset({functional.rms_norm, torch.rms_norm})
POWER: frozenset[Function] = frozenset({torch.pow, Tensor.pow, Tensor.__pow__})
INVERT: frozenset[Function] = frozenset(
    {
        *(torch.rsqrt, torch.reciprocal),
        *(Tensor.rsqrt, Tensor.reciprocal),
    }
)
ELEMENTWISE: frozenset[Function] = frozenset(
    {
        *(functional.gelu, functional.silu, functional.relu, functional.elu, functional.selu),
        *(functional.mish, functional.softplus, functional.leaky_relu, functional.relu6),
        *(functional.hardswish, functional.hardtanh, functional.sigmoid, functional.tanh),
        *(torch.relu, torch.tanh, torch.sigmoid, torch.erf, torch.clamp, torch.square, torch.sqrt),
        *(Tensor.relu, Tensor.tanh, Tensor.sigmoid, Tensor.erf, Tensor.clamp, Tensor.square),
        *(Tensor.sqrt, functional.logsigmoid),
    }
)
# In-place functions run out of place first: rules need the input in the backward pass.
BESIDE: dict[Function, Function] = {
    Tensor.mul_: Tensor.mul,
    Tensor.div_: Tensor.div,
    Tensor.add_: Tensor.add,
    Tensor.sub_: Tensor.sub,
}
