"""The largest tensor that is made while something runs."""

import torch
from torch.utils._python_dispatch import TorchDispatchMode


class Largest(TorchDispatchMode):
    """The most numbers that one operation has given."""

    numbers = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        found = func(*args, **(kwargs or {}))
        if isinstance(found, torch.Tensor) and 0 not in found.stride():
            self.numbers = max(self.numbers, found.numel())
        return found
