"""The devices of this machine, by name."""

import torch

from attlas.errors import UsageError


def choose_device(device: str | torch.device | None) -> torch.device:
    """The device of this name; by default a GPU if there is one."""
    if device is not None:
        try:
            if torch.empty(0, device=device).is_meta:
                raise RuntimeError("it holds no weights")
            return torch.device(device)
        except (RuntimeError, AssertionError, NotImplementedError) as problem:
            allowed = ", ".join(_devices())
            raise UsageError(f"no device {str(device)!r} here: allowed: {allowed}") from problem
    if torch.cuda.is_available():
        return torch.device("cuda")
    return torch.device("mps" if torch.backends.mps.is_available() else "cpu")


def _devices() -> list[str]:
    cards = [f"cuda:{number}" for number in range(torch.cuda.device_count())]
    return ["cpu", *cards, *(["mps"] if torch.backends.mps.is_available() else [])]
