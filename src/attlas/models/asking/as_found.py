"""Is the opened model still the model as it was found, on its own attention backend?

A tap spells attention out; the user's model may compute it fused. Both must be one function up to
rounding. Measured on sdpa against the opened model, as shares of the largest output: in float32
2e-6 on SmolLM2-135M and on a MiniLM; in float16 3e-3 on both; in bfloat16 0.03 and 0.11.
"""

from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch import Tensor
from torch.nn.attention import SDPBackend, sdpa_kernel

from attlas.models.tap.fused import multiplies_in_tf32

ON_EAGER = (  # the way out
    'load it on eager attention, with attn_implementation="eager" in attlas.load or '
    "from_pretrained, or with --attn-implementation eager"
)
MOST_STEPS = 1000  # of rounding, in the largest output
MOST_KERNELS = 4  # times as far as two kernels of sdpa are apart
MOST_IN_HALF = 0.5  # half precision moves single outputs far: only what is blatant can be told


def first_tensor(output: Any) -> Tensor:
    """The first tensor of a model's output, whatever its name."""
    values: Iterable[Any] = output.values() if hasattr(output, "values") else [output]
    first: Tensor = next(value for value in values if isinstance(value, Tensor))
    return first


def distance(opened: Tensor, found: Tensor) -> float:
    """The largest difference between two outputs, as a share of the largest value found."""
    apart, size = (opened - found).double(), found.double().abs()
    finite = torch.isfinite(apart)
    if not finite.any():
        return 0.0
    return float(apart[finite].abs().max() / size[finite].max().clamp_min(1e-6))


def rounding(output: Tensor) -> float:
    """The distance that rounding explains; modelling files take some softmaxes in float32."""
    step = max(torch.finfo(output.dtype).eps, torch.finfo(torch.float32).eps)
    if multiplies_in_tf32(output):
        step = torch.finfo(torch.float16).eps  # tf32 keeps as many digits
    return min(MOST_STEPS * step, MOST_IN_HALF)


def moves_as_far(forward: Callable[[], Tensor], found: Tensor, apart: float) -> bool:
    """Whether the model as it was found moves about as far by itself, so that nothing can be told.

    It may not repeat itself; or it makes rounding so large that another kernel of sdpa, which is
    the same function, moves it too.
    """
    if not torch.equal(found, forward()):
        return True
    with sdpa_kernel(SDPBackend.MATH):
        return apart <= MOST_KERNELS * distance(forward(), found)
