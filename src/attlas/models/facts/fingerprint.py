"""The fingerprint of a model: a digest of its weights."""

from hashlib import sha256

import torch
from torch import Tensor, nn

_BITS = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}


def fingerprint(model: nn.Module) -> str:
    """A digest of the weights: the same on every device; different if a value changes or two swap.

    It covers the name, type and shape of each tensor, and the sums of its rows and columns. Bits
    are summed as whole numbers, so the order of a sum does not matter. Weights that are not in
    memory count by name and shape only.
    """
    total = sha256(type(model).__name__.encode())
    for name, value in sorted(model.state_dict().items()):
        if isinstance(value, Tensor):
            total.update(f"{name} {value.dtype} {tuple(value.shape)}".encode())
            total.update(_sums(value.detach()))
    return total.hexdigest()


def _sums(tensor: Tensor) -> bytes:
    if tensor.is_meta or tensor.numel() == 0:
        return b""
    real = torch.view_as_real(tensor.resolve_conj()) if tensor.is_complex() else tensor
    bits = real.contiguous().view(_BITS[real.element_size()])
    table = bits.reshape(-1, bits.shape[-1] if bits.ndim else 1)
    sums = [table.sum(axis, dtype=torch.int64) for axis in (0, 1)]
    return b"".join(each.cpu().numpy().astype("<i8").tobytes() for each in sums)
