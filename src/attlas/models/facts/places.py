"""Where models are and how they may be loaded; nothing is loaded to find out, nor is torch."""

import json
import os
import re
import socket
from collections.abc import Mapping
from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path, PurePath
from typing import Any
from urllib.parse import urlsplit

from attlas.errors import ModelError, UnknownNameError, in_short, nearest

AUTO_CLASSES = {
    "sequence classification": "AutoModelForSequenceClassification",
    "next sentence": "AutoModelForNextSentencePrediction",
    "token classification": "AutoModelForTokenClassification",
    "question answering": "AutoModelForQuestionAnswering",
    "masked lm": "AutoModelForMaskedLM",
    "causal lm": "AutoModelForCausalLM",
    "sequence to sequence": "AutoModelForSeq2SeqLM",
    "image classification": "AutoModelForImageClassification",
    "sound classification": "AutoModelForAudioClassification",
    "speech recognition": "AutoModelForCTC",
    "image and text": "AutoModelForZeroShotImageClassification",
    "visual question answering": "AutoModelForQuestionAnswering",
    "similarity": "AutoModel",
}
ADAPTER = "adapter_config.json"
SENTENCES = ("modules.json", "sentence_bert_config.json")
LAYERS = (
    *("num_hidden_layers", "num_layers", "n_layer", "n_layers", "encoder_layers"),
    *("decoder_layers", "num_decoder_layers"),
)
MOST_NAMED = 3  # models in a folder that an error names
MOST_LAYERS = 10_000  # a configuration that says more is damaged, and would be built for hours
ATTENTION = ("sdpa", "eager")  # what a model may be loaded on and opened
DTYPES = ("float32", "float64", "float16", "bfloat16")
DEVICES = ("cpu", "cuda", "mps", "xpu", "hpu", "npu", "mtia", "xla")


def embedded_names() -> list[str]:
    """The names of the models that come with Attlas."""
    folder = files("attlas.embedded")
    return sorted(item.name for item in folder.iterdir() if item.joinpath("config.json").is_file())


def find_model(name: str) -> str:
    """The folder of a built-in name or a folder; a hub id is returned as it is."""
    try:
        return _find(name)
    except (OSError, ValueError, RuntimeError) as problem:  # too long, or no name of a file
        raise ModelError(f"no model is called {in_short(name)!r}: {problem}") from problem


def _find(name: str) -> str:
    if name in embedded_names():
        return str(files("attlas.embedded").joinpath(name))
    path = Path(os.path.expanduser(name))
    if path.is_dir():
        if not _is_model(path):
            raise ModelError(_no_model(name, path))
        return str(path)
    if is_gguf(str(path)):
        return str(path)
    if path.exists():
        raise ModelError(f"{name} is a file: give the folder that holds the model")
    if name.startswith((".", "/", "~")) or name.count("/") > 1:
        kind = "file" if name.endswith(".gguf") else "folder"
        raise ModelError(f"the {kind} {name} is not there")
    return name


def _no_model(name: str, folder: Path) -> str:
    """What is wrong with a folder without a model, and which models lie right in it, if any do."""
    inside = [
        each for each in sorted(folder.iterdir()) if each.suffix == ".gguf" or _is_model(each)
    ]
    named = " or ".join(str(each) for each in inside[:MOST_NAMED])
    said = f"the folder {name} has no config.json, so it holds no model"
    return f"{said}: give {named}" if inside else said


def _is_model(folder: Path) -> bool:
    """Whether this is a folder that a model was saved to, such as a checkpoint of a training."""
    return (folder / "config.json").is_file() or is_adapter(str(folder))


def is_gguf(place: str) -> bool:
    """Whether this is a GGUF file: a model in one file."""
    return place.endswith(".gguf") and Path(place).is_file()


def is_adapter(place: str) -> bool:
    """Whether this is a folder of PEFT: weights to be added to those of another model."""
    return (Path(place) / ADAPTER).is_file() and not (Path(place) / "config.json").is_file()


def file_of(model: str, name: str) -> Path | None:
    """A file that comes with a model, by its folder or its hub id; None if there is none."""
    folder = Path(os.path.expanduser(model))
    if folder.exists() or model.startswith((".", "/", "~")) or model.count("/") != 1:
        return folder / name if (folder / name).is_file() else None
    from transformers.utils import cached_file

    quietly = ("gated_repo", "missing_entries", "connection_errors")
    options = {f"_raise_exceptions_for_{each}": False for each in quietly}
    try:
        found = cached_file(model, name, local_files_only=hub_is_away(), **options)
    except OSError:  # no such model
        return None
    return Path(found) if found else None


def compares_sentences(model: str) -> bool:
    """Whether a model was saved by sentence-transformers, whatever its config.json says."""
    return any(file_of(model, each) is not None for each in SENTENCES)


def check_weights(model: str, name: str, config: Any) -> None:
    """Refuse weights that are no safetensors in the model's own folder, and far too many layers.

    An index may name any file as the place of a weight, and transformers reads what it names.
    """
    indexes = [getattr(config, "transformers_weights", None), "model.safetensors.index.json"]
    for index in indexes:
        if not isinstance(index, str) or not index.endswith(".index.json"):
            continue
        path = file_of(model, index) if _is_inside(index) else None
        for shard in [] if path is None else _shards(path, name):
            if not isinstance(shard, str) or not shard.endswith(".safetensors"):
                reason = f"its {index} names {shard!r}; unsafe_weights=True allows other weights"
                raise ModelError(f"{name} has no safetensors weights alone: {reason}")
            if not _is_inside(shard):
                raise ModelError(f"{index} of {name} names {shard!r}, which is outside its folder")
    for each in LAYERS:
        count = getattr(config, each, None)
        if isinstance(count, int) and not 0 <= count <= MOST_LAYERS:
            raise ModelError(f"{name} is damaged: its config.json has {count} as {each}")


def _is_inside(name: str) -> bool:
    parts = PurePath(name).parts
    return bool(parts) and not PurePath(name).is_absolute() and ".." not in parts


def _shards(index: Path, name: str) -> set[Any]:
    """The files that an index names."""
    try:
        named = json.loads(index.read_text("utf-8"))["weight_map"]
        return {each if isinstance(each, str) else repr(each) for each in named.values()}
    except (OSError, ValueError, LookupError, TypeError, AttributeError, RecursionError) as problem:
        raise ModelError(f"{name} is damaged: its {index.name} cannot be read") from problem


def model_class_of(config: Any, task: str | None, name: str, own: Mapping[str, Any]) -> Any:
    """The class of a model: the one for a task, or the one that its configuration names.

    `own` are classes that transformers does not have, by name.
    """
    import transformers

    if task is not None:
        if task not in AUTO_CLASSES:
            raise UnknownNameError("task", task, AUTO_CLASSES)
        return getattr(transformers, AUTO_CLASSES[task])
    architectures = getattr(config, "architectures", None)
    listed = architectures if isinstance(architectures, (list, tuple)) else [architectures]
    named = str(listed[0]) if listed else ""
    found = own.get(named) or getattr(transformers, named, None)
    if found is None:
        return transformers.AutoModel
    if not (isinstance(found, type) and issubclass(found, transformers.PreTrainedModel)):
        raise ModelError(f"the config.json of {name} names {listed[0]}, which is no model")
    return found


def check_installed(package: str, why: str) -> None:
    """Refuse what needs a package that is not there, and name the package."""
    if find_spec(package) is None:
        raise ModelError(f"{why}: to load it, install the package {package}")


def check_loading(
    model: str,
    task: str | None = None,
    device: str | None = None,
    dtype: str | None = None,
    attn_implementation: str | None = None,
) -> None:
    """Refuse a model that is not there, and an unknown task, device, number format or attention."""
    check_attention(attn_implementation)
    if task is not None and task not in AUTO_CLASSES:
        raise UnknownNameError("task", task, AUTO_CLASSES)
    if device is not None and re.sub(r":\d+$", "", device) not in DEVICES:
        raise UnknownNameError("device", device, DEVICES)
    if dtype is not None and dtype not in DTYPES:
        raise UnknownNameError("dtype", dtype, DTYPES)
    if find_model(model) == model and not Path(model).exists() and not _is_on_hub(model):
        raise ModelError(unknown_model(model))


def check_attention(implementation: str | None) -> None:
    """Refuse a kind of attention that cannot be opened, or that there is not."""
    if implementation is not None and implementation not in ATTENTION:
        raise UnknownNameError("attn_implementation", implementation, ATTENTION)


def choose_dtype(dtype: Any, device: Any) -> Any:
    """The number format asked for: the checkpoint's own on a GPU, and float32 elsewhere."""
    import torch

    if isinstance(dtype, torch.dtype):
        return dtype
    if dtype is not None:
        found = getattr(torch, str(dtype), None)
        if not isinstance(found, torch.dtype) or not found.is_floating_point:
            raise UnknownNameError("dtype", dtype, DTYPES)
        return found
    return "auto" if device.type == "cuda" else torch.float32


def unknown_model(name: str) -> str:
    """What to say of a name that no model has."""
    known = embedded_names()
    near = nearest(in_short(name), known, 0.6)
    hint = f"did you mean {near!r}? " if near else ""
    return (
        f"unknown model {in_short(name)!r}: {hint}it is no folder, no built-in model "
        f"({', '.join(known)}), and it was not found on the hub"
    )


def _is_on_hub(name: str) -> bool:
    """Whether a model is in the local cache or on the hub; True if the hub does not say."""
    import huggingface_hub

    try:
        if isinstance(huggingface_hub.try_to_load_from_cache(name, "config.json"), str):
            return True
        return not hub_is_away() and huggingface_hub.file_exists(name, "config.json")
    except huggingface_hub.errors.HFValidationError:
        return False
    except Exception:  # what is wrong with the network is told when the model is loaded
        return True


def hub_is_away() -> bool:
    """Whether the hub is switched off, or its name does not resolve."""
    from urllib.request import getproxies  # as long to import as all else here

    from huggingface_hub import constants

    host = urlsplit(constants.ENDPOINT).hostname
    try:
        if host and not getproxies():
            socket.getaddrinfo(host, 443)
    except socket.gaierror:
        return True
    return bool(constants.HF_HUB_OFFLINE)
