"""What tells one model from another: digests of its weights, its configuration, its tokenizer."""

import json
import re
from collections.abc import Mapping
from hashlib import sha256
from typing import Any

import numpy
import scipy
import tokenizers
import torch
import transformers
from torch import Tensor, nn

from attlas.models.facts import transformers_internals as internals
from attlas.models.facts.model_facts import ModelFacts
from attlas.models.loading.offloading import kept_weights

LIBRARIES = (torch, transformers, tokenizers, numpy, scipy)
# Where a model or a tokenizer came from, and what each of its calls sets anew.
_PASSING = frozenset(
    {
        *("_name_or_path", "name_or_path", "transformers_version", "dtype", "torch_dtype"),
        *("vocab_file", "merges_file", "tokenizer_file", "truncation", "padding", "_commit_hash"),
    }
)
_WORDS = ("model_max_length", "padding_side", "truncation_side", "chat_template")
_PARTS = ("tokenizer", "image_processor", "feature_extractor", "video_processor", "char_tokenizer")
_ADDRESS = re.compile(r" at 0x[0-9a-f]+")

_BITS = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}


def fingerprint(model: nn.Module) -> str:
    """A digest of the weights: the same on every device; different if a value changes or two swap.

    It covers the name, type and shape of each tensor, and the sums of its rows and columns. Bits
    are summed as whole numbers, so the order of a sum does not matter. Weights that are offloaded
    are read from where they are.
    """
    total, elsewhere = sha256(type(model).__name__.encode()), kept_weights(model)
    for name, value in sorted(model.state_dict().items()):
        if isinstance(value, Tensor):
            total.update(f"{name} {value.dtype} {tuple(value.shape)}".encode())
            if value.is_meta and name in elsewhere:
                kept, own = elsewhere[name]
                value = kept[own].to(value.dtype)
            total.update(_sums(value.detach()))
    return total.hexdigest()


def identity(facts: ModelFacts) -> dict[str, Any]:
    """Everything about a model that its answers depend on; each part names what differs."""
    own = {"dtype": str(facts.model.dtype), "device": facts.device.type}
    versions = {each.__name__: str(each.__version__) for each in LIBRARIES}
    return {**look(facts), **own, "versions": versions}


def look(facts: ModelFacts) -> dict[str, str]:
    """Digests of what a model is, wherever it runs."""
    configurations = internals.configurations(facts.model)
    generation = getattr(facts.model, "generation_config", None)
    settings = [_settings(each) for each in (*configurations, generation) if each is not None]
    classes = [_name(module) for module in facts.model.modules()]
    return {
        "weights": fingerprint(facts.model),
        "configuration": _digest([settings, classes]),
        "tokenizer": _digest(_reads(facts.processor)),
        "attention": ", ".join(sorted({*map(str, internals.implementations(configurations))})),
    }


def _digest(value: Any) -> str:
    text = _ADDRESS.sub("", json.dumps(_kept(value), sort_keys=True, default=str))
    return sha256(text.encode(errors="surrogatepass")).hexdigest()


def _kept(value: Any) -> Any:
    """The value with plain keys, without what is of the place or the last call."""
    if isinstance(value, Mapping):
        found = [(str(key), _kept(each)) for key, each in value.items()]
        return {key: each for key, each in found if key not in _PASSING}
    if isinstance(value, (list, tuple)):
        return [_kept(each) for each in value]
    return sorted(map(str, value)) if isinstance(value, (set, frozenset)) else value


def _settings(config: Any) -> Any:
    return config.to_dict() if hasattr(config, "to_dict") else str(config)


def _name(thing: Any) -> str:
    return f"{type(thing).__module__}.{type(thing).__qualname__}"


def _reads(processor: Any) -> Any:
    """What decides how a text, a picture or a sound becomes the input of a model."""
    backend = getattr(processor, "backend_tokenizer", None)
    if backend is not None:
        vocabulary = json.loads(backend.to_str())
    elif hasattr(processor, "get_vocab"):
        vocabulary = processor.get_vocab()
    else:
        vocabulary = processor.to_dict() if hasattr(processor, "to_dict") else None
    words = {name: getattr(processor, name, None) for name in _WORDS}
    special = getattr(processor, "special_tokens_map", None)
    parts = [getattr(processor, name, None) for name in _PARTS]
    inner = [_reads(each) for each in parts if each is not None and each is not processor]
    return [_name(processor), vocabulary, words, special, inner]


def _sums(tensor: Tensor) -> bytes:
    if hasattr(tensor, "__tensor_flatten__"):  # quantised: its numbers, their scales, and so on
        return b"".join(_sums(getattr(tensor, each)) for each in tensor.__tensor_flatten__()[0])
    if tensor.is_meta or tensor.numel() == 0:
        return b""
    real = torch.view_as_real(tensor.resolve_conj()) if tensor.is_complex() else tensor
    bits = real.contiguous().view(_BITS[real.element_size()])
    table = bits.reshape(-1, bits.shape[-1] if bits.ndim else 1)
    sums = [table.sum(axis, dtype=torch.int64) for axis in (0, 1)]
    return b"".join(each.cpu().numpy().astype("<i8").tobytes() for each in sums)
