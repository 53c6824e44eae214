"""Where the weights of a model go, and in how many bits; nothing is loaded to find out."""

import re
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from attlas.errors import ModelError, UnknownNameError, UsageError

MAPS = ("auto", "balanced", "balanced_low_0", "sequential")
# The package that keeps weights in so many bits, by the word for it.
QUANTISERS = {"int8": "torchao", "int4": "bitsandbytes"}
_SIZE = re.compile(r"\d+(\.\d+)? ?[KMGT]i?B", re.IGNORECASE)


def check_placement(
    device: Any = None,
    device_map: Any = None,
    max_memory: Mapping[Any, Any] | None = None,
    quantization: Any = None,
) -> None:
    """Refuse a placement that is not possible, before anything is loaded."""
    if device_map is None and max_memory:
        raise UsageError("max_memory is for a device_map: give device_map='auto' with it")
    if device_map is not None:
        _check_map(device, device_map)
        _need("accelerate", "device_map spreads a model over devices")
    for place, size in (max_memory or {}).items():
        if not (isinstance(size, int) and size > 0) and not _SIZE.fullmatch(str(size)):
            raise UsageError(f"max_memory of {place} is a size such as 2GB, not {size!r}")
    if isinstance(quantization, str):
        if quantization not in QUANTISERS:
            raise UnknownNameError("quantization", quantization, QUANTISERS)
        _need(QUANTISERS[quantization], f"weights in {quantization}")


def _check_map(device: Any, device_map: Any) -> None:
    if device is not None:
        raise UsageError("a model has a device or a device_map, not both")
    is_word = isinstance(device_map, str) and not re.fullmatch(r"(cpu|cuda|mps)(:\d+)?", device_map)
    if is_word and device_map not in MAPS:
        raise UnknownNameError("device_map", device_map, MAPS)


def _need(package: str, why: str) -> None:
    if find_spec(package) is None:
        raise ModelError(f"{why}: this needs the package {package}, which is not installed")


def placement(
    device_map: Any,
    max_memory: Mapping[Any, Any] | None,
    offload_folder: str | Path | None,
    quantization: Any,
    device: Any,
) -> dict[str, Any]:
    """The arguments of transformers that put weights where they are to be.

    Quantised weights are made on their device, and cannot be moved there afterwards.
    """
    found: dict[str, Any] = {}
    if quantization is not None:
        found["quantization_config"] = _configuration(quantization)
        device_map = {"": str(device)} if device_map is None else device_map
    if device_map is not None:
        found["device_map"] = device_map
    if max_memory:
        found["max_memory"] = {_numbered(place): size for place, size in max_memory.items()}
    if offload_folder is not None:
        found["offload_folder"] = str(offload_folder)
    return found


def _numbered(place: Any) -> Any:
    """A GPU as accelerate names it: by its number."""
    number = str(place).removeprefix("cuda:")
    return int(number) if number.isdecimal() else place


def _configuration(quantization: Any) -> Any:
    import transformers

    if quantization == "int8":
        from torchao.quantization import Int8WeightOnlyConfig

        return transformers.TorchAoConfig(Int8WeightOnlyConfig())
    if quantization == "int4":
        return transformers.BitsAndBytesConfig(load_in_4bit=True, bnb_4bit_quant_type="nf4")
    return quantization
