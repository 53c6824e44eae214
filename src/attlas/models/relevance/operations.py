"""What torch's functions do to activations, as far as relevance is concerned."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

Function = Callable[..., Any]

MULTIPLY: set[Function] = {torch.mul, torch.multiply, Tensor.mul, Tensor.multiply}
CONTRACT: set[Function] = {
    *(torch.matmul, torch.bmm, torch.mm, torch.mv, torch.einsum, torch.inner),
    *(Tensor.matmul, Tensor.bmm, Tensor.mm, Tensor.mv, Tensor.__rmatmul__),
    # Of experts; not every torch has both.
    *(getattr(functional, "grouped_mm", torch.mm), getattr(torch, "_grouped_mm", torch.mm)),
}
LINEAR: set[Function] = {functional.linear}
ADD_MULTIPLIED: set[Function] = {torch.addmm, Tensor.addmm, torch.baddbmm, Tensor.baddbmm}
CONVOLVE: set[Function] = {functional.conv1d, functional.conv2d}
DIVIDE: set[Function] = {
    *(torch.div, torch.divide, torch.true_divide),
    *(Tensor.div, Tensor.divide, Tensor.true_divide),
}
DIVIDE_INTO: set[Function] = {Tensor.__rtruediv__, Tensor.__rdiv__}
ADD: set[Function] = {torch.add, Tensor.add}
SUBTRACT: set[Function] = {torch.sub, torch.subtract, Tensor.sub, Tensor.subtract}
SUBTRACT_FROM: set[Function] = {torch.rsub, Tensor.__rsub__}
NEGATE: set[Function] = {torch.neg, torch.negative, Tensor.neg, Tensor.negative}
SUM: set[Function] = {torch.sum, torch.mean, Tensor.sum, Tensor.mean}
JOIN: set[Function] = {torch.cat, torch.concat, torch.concatenate}
SOFTMAX: set[Function] = {torch.softmax, functional.softmax, Tensor.softmax}
ATTEND: set[Function] = {functional.scaled_dot_product_attention}
LAYER_NORM: set[Function] = {functional.layer_norm, torch.layer_norm}
RMS_NORM: set[Function] = {functional.rms_norm, torch.rms_norm}
POWER: set[Function] = {torch.pow, Tensor.pow, Tensor.__pow__}
INVERT: set[Function] = {
    *(torch.rsqrt, torch.reciprocal),
    *(Tensor.rsqrt, Tensor.reciprocal),
}
ELEMENTWISE: set[Function] = {
    *(functional.gelu, functional.silu, functional.relu, functional.elu, functional.selu),
    *(functional.mish, functional.softplus, functional.leaky_relu, functional.relu6),
    *(functional.hardswish, functional.hardtanh, functional.sigmoid, functional.tanh),
    *(torch.relu, torch.tanh, torch.sigmoid, torch.erf, torch.clamp, torch.square, torch.sqrt),
    *(Tensor.relu, Tensor.tanh, Tensor.sigmoid, Tensor.erf, Tensor.clamp, Tensor.square),
    *(Tensor.sqrt, functional.logsigmoid),
}
# What is written over its input is computed beside it first: rules need the input on the way back.
BESIDE: dict[Function, Function] = {
    Tensor.mul_: Tensor.mul,
    Tensor.div_: Tensor.div,
    Tensor.add_: Tensor.add,
    Tensor.sub_: Tensor.sub,
}
