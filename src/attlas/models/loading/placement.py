"""Where the weights of a model go, and in how many bits; nothing is loaded to find out."""

import re
from collections.abc import Iterator, Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from attlas.errors import ModelError, UnknownNameError, UsageError

MAPS = ("auto", "balanced", "balanced_low_0", "sequential")
# The package that keeps weights in so many bits, by the word for it.
QUANTISERS = {"int8": "torchao", "int4": "bitsandbytes"}
_SIZE = re.compile(r"\d+(\.\d+)? ?[KMGT]i?B", re.IGNORECASE)
_PLACE = re.compile(r"cpu|disk|mps|(cuda:)?\d+")


def check_placement(
    device: Any = None,
    device_map: Any = None,
    max_memory: Mapping[Any, Any] | None = None,
    quantization: Any = None,
    offload_folder: Any = None,
) -> None:
    """Refuse a placement that is not possible, before anything is loaded."""
    if device_map is None and (max_memory or offload_folder is not None):
        word = "max_memory" if max_memory else "offload_folder"
        raise UsageError(f"{word} is for a device_map: give device_map='auto' with it")
    if device_map is not None:
        _check_map(device, device_map)
        _need("accelerate", "device_map spreads a model over devices")
    if max_memory:
        _check_limits(max_memory)
    if isinstance(quantization, str):
        if quantization not in QUANTISERS:
            raise UnknownNameError("quantization", quantization, QUANTISERS)
        _need(QUANTISERS[quantization], f"weights in {quantization}")
    elif not (isinstance(quantization, Mapping | None) or hasattr(quantization, "quant_method")):
        words = " or ".join(QUANTISERS)
        raise UsageError(
            f"quantization_config is {words}, or a configuration of transformers, "
            f"not {quantization!r}"
        )


def _check_map(device: Any, device_map: Any) -> None:
    if device is not None:
        raise UsageError("a model has a device or a device_map, not both")
    is_word = isinstance(device_map, str) and not re.fullmatch(r"(cpu|cuda|mps)(:\d+)?", device_map)
    if is_word and device_map not in MAPS:
        raise UnknownNameError("device_map", device_map, MAPS)
    is_known = isinstance(device_map, (str, int, Mapping)) and not isinstance(device_map, bool)
    if not is_known and type(device_map).__name__ != "device":  # that of torch
        raise UsageError(
            f"device_map is {', '.join(MAPS)}, a device, or the place of each module, "
            f"not {device_map!r}"
        )
    if isinstance(device_map, Mapping) and not device_map:
        raise UsageError("device_map gives no module a place")


def _check_limits(max_memory: Any) -> None:
    if not isinstance(max_memory, Mapping):
        raise UsageError(f"max_memory is a size for each device, not {max_memory!r}")
    for place, size in max_memory.items():
        if not _PLACE.fullmatch(str(place)):
            raise UsageError(
                f"max_memory is for cpu, disk, mps, or a GPU by its number, not {place!r}"
            )
        is_number = isinstance(size, int) and not isinstance(size, bool) and size > 0
        if not is_number and not _SIZE.fullmatch(str(size)):
            raise UsageError(f"max_memory of {place} is a size such as 2GB, not {size!r}")


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


def check_devices(device_map: Any, max_memory: Mapping[Any, Any] | None) -> None:
    """Refuse a device that this machine does not have."""
    from attlas.models.loading.devices import choose_device  # which needs torch

    for each in _devices(device_map, max_memory):
        if each not in ("cpu", "disk"):
            choose_device(f"cuda:{each}" if isinstance(each, int) else each)


def check_names(model: Any, device_map: Any) -> None:
    """Refuse a place for what the model does not have: nothing went there."""
    if isinstance(device_map, Mapping):
        modules = [name for name, _ in model.named_modules()]
        for each in device_map.keys() - {*modules, *model.state_dict()}:
            raise UnknownNameError("module in device_map", each, filter(None, modules))


def _devices(device_map: Any, max_memory: Mapping[Any, Any] | None) -> Iterator[Any]:
    """All devices that are named."""
    given = device_map.values() if isinstance(device_map, Mapping) else [device_map]
    yield from (_numbered(each) for each in given if each is not None and each not in MAPS)
    yield from map(_numbered, max_memory or ())


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
