"""Loading: a hub id, a folder, a file, a built-in name or a pipeline becomes a Subject."""

import json
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from inspect import signature
from pathlib import Path
from typing import Any

import torch

from attlas.errors import ModelError, UsageError, first_line
from attlas.models.facts.places import (
    check_attention,
    check_installed,
    check_weights,
    choose_dtype,
    compares_sentences,
    embedded_names,
    find_model,
    hub_is_away,
    is_adapter,
    is_gguf,
    model_class_of,
    unknown_model,
)
from attlas.models.facts.tasks import find_task
from attlas.models.intervening.removing_heads import RECORD, load_without_heads
from attlas.models.loading.devices import choose_device
from attlas.models.loading.failures import announced, lacking
from attlas.models.loading.offloading import multiply_exactly, refuse_offloaded_bits, tie_offloaded
from attlas.models.loading.placement import check_devices, check_names, check_placement, placement
from attlas.models.loading.sealed import sealed_weights
from attlas.models.loading.unwrapping import (
    ADAPTER_WEIGHTS,
    add_adapter,
    check_adapter,
    read_adapter,
    unwrap,
)
from attlas.models.recurrent import CLASSES, register_classes
from attlas.models.subject import Subject

DEFAULT = "sentiment"
SHELL = "base_model.model."  # what PEFT writes before the name of a weight
ADAPTED = {
    "SEQ_CLS": "sequence classification",
    "TOKEN_CLS": "token classification",
    "QUESTION_ANS": "question answering",
    "CAUSAL_LM": "causal lm",
    "SEQ_2_SEQ_LM": "sequence to sequence",
}


def load(
    model: Any = DEFAULT,
    *,
    task: str | None = None,
    device: str | torch.device | None = None,
    dtype: str | torch.dtype | None = None,
    attn_implementation: str | None = None,
    device_map: Any = None,
    max_memory: Mapping[Any, int | str] | None = None,
    offload_folder: str | Path | None = None,
    quantization_config: Any = None,
    unsafe_weights: bool = False,
    trust_remote_code: bool = False,
) -> Subject:
    """Load a model: a built-in name, a folder, a hub id, a GGUF file, or a `pipeline`.

    The folder of a PEFT adapter is loaded with the model that it names, and the weights of both are
    added up.

    By default, `device` is a GPU if there is one, and `dtype` is that of the checkpoint on a GPU
    and float32 elsewhere. `attn_implementation` is `"sdpa"` or `"eager"`; transformers chooses if
    it is not given, and a few families can be opened on eager attention only. Weights are read
    from safetensors only; `unsafe_weights` also allows pickled weights. `trust_remote_code` runs
    code that comes with the model.

    A model that does not fit is spread by `device_map="auto"` over all GPUs, then the host, then
    the disk, up to `max_memory` of each, such as `{0: "20GB", "cpu": "60GB"}`. What goes to disk
    and is not there yet is written to `offload_folder`. `quantization_config` keeps weights in
    `"int8"`, in `"int4"`, or as a configuration of transformers says.
    """
    if hasattr(model, "model") and hasattr(model, "tokenizer"):  # a transformers pipeline
        pictures = getattr(model, "image_processor", None)
        processor = model if model.tokenizer and pictures else model.tokenizer or pictures
        return Subject(model.model, processor, task=task)
    if not isinstance(model, (str, Path)):
        raise UsageError(
            f"a model is a name, a folder, a hub id or a pipeline, not {type(model).__name__}; "
            "for a model in memory use attlas.Subject(model, tokenizer)"
        )
    check_attention(attn_implementation)
    check_placement(device, device_map, max_memory, quantization_config, offload_folder)
    place = find_model(str(model))
    if task is None and is_gguf(place):
        task = "causal lm"  # such a file does not name its head
    home = choose_device(device)
    check_devices(device_map, max_memory)
    placed = placement(device_map, max_memory, offload_folder, quantization_config, home)
    options = {
        "dtype": choose_dtype(dtype, home),
        **placed,
        "attn_implementation": attn_implementation,
        "use_safetensors": None if unsafe_weights else True,
        "trust_remote_code": trust_remote_code,
    }
    with hub_in_reach(), _quiet(place):
        if task is None and compares_sentences(place):
            task = "similarity"
        if is_adapter(place):
            found, place = _load_adapted(place, str(model), task, options)
        else:
            found = _load_model(place, str(model), task, options)
        processor = load_processor(place, str(model), _kind_of_processor(found), trust_remote_code)
    subject = Subject(found, processor, name=str(model), task=task)
    if "device_map" not in placed:
        subject.model.to(home)
    subject.model.eval()
    return subject


def _load_adapted(
    place: str, name: str, task: str | None, options: dict[str, Any]
) -> tuple[Any, str]:
    """A model with the weights of an adapter added to its own, and where its tokenizer is."""
    check_installed("peft", f"{name} is a PEFT adapter")
    if not (Path(place) / ADAPTER_WEIGHTS).is_file():
        raise ModelError(f"{name} is a PEFT adapter without {ADAPTER_WEIGHTS}")
    try:
        settings, shapes = read_adapter(place)
    except Exception as problem:
        raise ModelError(f"{name} is a damaged PEFT adapter: {first_line(problem)}") from problem
    own = {each.removeprefix(SHELL): shapes[each] for each in shapes if ".lora_" not in each}
    base, kind = str(settings.base_model_name_or_path), ADAPTED.get(str(settings.task_type))
    classes = [shape[0] for shape in own.values() if len(shape) == 2]
    if classes and kind in ("sequence classification", "token classification"):
        options = {**options, "num_labels": min(classes)}
    model = _load_model(find_model(base), base, task or kind, options, filled=own)
    try:
        adapted = add_adapter(model, place)
    except Exception as problem:
        raise ModelError(why_not(name, problem)) from problem
    unwrap(adapted)  # refuses an adapter that adds tokens of its own
    check_adapter(adapted, set(shapes), name)
    has_words = (Path(place) / "tokenizer_config.json").is_file()
    return adapted.merge_and_unload(), place if has_words else find_model(base)


def _load_model(
    place: str,
    name: str,
    task: str | None,
    options: dict[str, Any],
    filled: Collection[str] = (),  # weights that come from elsewhere
) -> Any:
    config = load_config(place, name, options["trust_remote_code"])
    if options["use_safetensors"]:
        check_weights(place, name, config)
    model_class = model_class_of(config, task, name, CLASSES)
    load_it = model_class.from_pretrained
    if getattr(config, RECORD, None):
        load_it = partial(load_without_heads, model_class, config)
    place, from_file = _one_file(place)
    try:
        with sealed_weights(place):
            model, report = load_it(place, output_loading_info=True, **from_file, **options)
    except ModelError:
        raise
    except Exception as problem:
        raise ModelError(
            why_not(name, problem, ", or allow them with unsafe_weights=True")
        ) from problem
    check_names(model, options.get("device_map"))
    refuse_offloaded_bits(model)
    tie_offloaded(model)
    multiply_exactly(model)
    missing = sorted(set(report["missing_keys"]) - set(filled))
    if task == "similarity":  # which is read from the last states, not from what pools them
        missing = [each for each in missing if not each.startswith("pooler.")]
    if missing:
        raise ModelError(
            f"{name} has no weights for {missing[0]}"
            + (f" and {len(missing) - 1} more" if len(missing) > 1 else "")
            + f": it was not trained as {model_class.__name__}"
        )
    return model


def _one_file(place: str) -> tuple[str, dict[str, str]]:
    """How transformers takes a place: a folder, and the file in it if that is all of the model."""
    if not is_gguf(place):
        return place, {}
    check_installed("gguf", f"{Path(place).name} is a GGUF file")
    return str(Path(place).parent), {"gguf_file": Path(place).name}


def load_config(place: str, name: str, trust_remote_code: bool) -> Any:
    """The configuration of a model, ours included."""
    import transformers

    place, from_file = _one_file(place)
    register_classes()
    try:
        return transformers.AutoConfig.from_pretrained(
            place, trust_remote_code=trust_remote_code, **from_file
        )
    except Exception as problem:
        raise ModelError(why_not(name, problem)) from problem


def load_processor(place: str, name: str, kind: str, trust_remote_code: bool) -> Any:
    """What prepares the inputs of a model, or the reason why it cannot be read, in one line."""
    import transformers

    loaders = {
        "processor": transformers.AutoProcessor,
        "image processor": transformers.AutoImageProcessor,
        "feature extractor": transformers.AutoFeatureExtractor,
        "tokenizer": transformers.AutoTokenizer,
    }
    place, from_file = _one_file(place)
    try:
        processor = loaders[kind].from_pretrained(
            place, trust_remote_code=trust_remote_code, **from_file
        )
        ", ".join(getattr(processor, "model_input_names", ()))  # or it fails at its first text
    except Exception as problem:
        raise ModelError(f"the {kind} of {name} cannot be loaded: {lacking(problem)}") from problem
    # Where the files are missing, transformers makes up a tokenizer that knows no word.
    words = processor.tokenizer if kind == "processor" else processor
    if kind in ("processor", "tokenizer") and len(words) <= len(words.all_special_ids):
        raise ModelError(f"the tokenizer of {name} has no vocabulary: its files are missing")
    return processor


def _kind_of_processor(model: Any) -> str:
    """What prepares the inputs of a model: a tokenizer, an image processor, or both in one."""
    task = find_task(model)
    writes = task is not None and task.name in ("causal lm", "sequence to sequence")
    if getattr(model, "main_input_name", None) == "pixel_values" and not writes:
        return "image processor"
    if getattr(model, "main_input_name", None) in ("input_values", "input_features"):
        alone = task is not None and task.name == "sound classification"
        return "feature extractor" if alone else "processor"
    reads_both = writes or (task is not None and task.pairs)
    sees = "pixel_values" in signature(model.forward).parameters
    return "processor" if reads_both and sees else "tokenizer"


def why_not(name: str, problem: Exception, instead: str = "") -> str:
    """Why a model cannot be loaded, in one line; `instead` is what allows pickled weights."""
    text = str(problem)
    if isinstance(problem, json.JSONDecodeError) or "valid JSON file" in text:
        return f"{name} is damaged: its config.json cannot be read"
    if type(problem).__name__ == "SafetensorError":
        return f"{name} is damaged: its weights cannot be loaded ({announced(problem)})"
    if "safetensors" in text and "model.safetensors" in text:
        return (
            f"{name} has no safetensors weights; pickled ones can run code when they are read: "
            f"convert them{instead}"
        )
    if isinstance(problem, OSError) and not Path(name).exists():
        return unknown_model(name)
    return f"{name} cannot be loaded: {announced(problem)}"


@contextmanager
def hub_in_reach() -> Iterator[None]:
    """Use only the local cache if the name of the hub does not resolve, instead of retrying."""
    from huggingface_hub import constants

    before = constants.HF_HUB_OFFLINE
    constants.HF_HUB_OFFLINE = hub_is_away()
    try:
        yield
    finally:
        constants.HF_HUB_OFFLINE = before


@contextmanager
def _quiet(place: str) -> Iterator[None]:
    """Show no progress bar for the small models that come with Attlas."""
    from transformers.utils import logging

    shown = logging.is_progress_bar_enabled()
    if Path(place).name in embedded_names():
        logging.disable_progress_bar()
    try:
        yield
    finally:
        if shown:
            logging.enable_progress_bar()
