"""Every method on a model that a tester built: does it run, is it refused, or does it break?"""

from __future__ import annotations

import traceback
from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

import numpy as np
from compatibility_judge import first_line, limited
from PIL import Image
from testers_page import LONG, RAN, RAW, REFUSED, UNDEFINED
from tokenizers import Tokenizer, models, pre_tokenizers, processors
from transformers import PreTrainedTokenizerFast

import attlas
from attlas.checking import FEW_STEPS
from attlas.errors import AttlasError, NotDefinedError
from attlas.methods import METHODS
from attlas.models.encoding.images import sample_objects

LIMIT = 60  # seconds of processor time for one method

OF_PICTURES = ("pixel_values", "pixel_attention_mask", "pixel_mask", "spatial_shapes")
OF_SOUNDS = ("input_values", "input_features")
WORDS = 8
QUESTION = (0, 1, 2)  # which words a question has
ROLES = ("pad", "bos", "eos", "mask", "unk")


class GivenPixels:
    """Stands for an image processor: whatever the picture, the pixels are those of the tester."""

    def __init__(self, inputs: Mapping[str, Any]) -> None:
        self.given = {name: inputs[name][:1] for name in OF_PICTURES if name in inputs}

    def __call__(self, **_: Any) -> dict[str, Any]:
        return self.given


class GivenSound:
    """Stands for a feature extractor: whatever the sound, what it gives is that of the tester."""

    sampling_rate = 16000

    def __init__(self, name: str, inputs: Mapping[str, Any]) -> None:
        self.given = {name: inputs[name][:1]}

    def __call__(self, *_: Any, **__: Any) -> dict[str, Any]:
        return self.given


class GivenBoth:
    """Stands for a processor: whatever picture and text, the inputs are those of the tester."""

    def __init__(self, texts: Any, picture: GivenPixels, inputs: Mapping[str, Any]) -> None:
        self.tokenizer, self.image_processor = texts, picture
        rows = len(inputs["input_ids"]) if "input_ids" in inputs else 1
        own = {name: value for name, value in inputs.items() if not name.startswith("decoder")}
        self.given = {
            name: value[: len(value) // rows]
            for name, value in own.items()
            if name != "labels" and getattr(value, "ndim", 0)
        }

    def __call__(self, **_: Any) -> dict[str, Any]:
        return self.given


def tokenizer(config: Any) -> PreTrainedTokenizerFast:
    """A tokenizer of made-up words with the vocabulary and special tokens of a configuration."""
    size = _vocabulary(config)
    names = {number: f"w{number}" for number in range(size)}
    roles, taken = {}, _special_ids(config, size)
    free = [number for number in reversed(range(size)) if number not in taken.values()]
    for role in ROLES:
        number = taken.get(role, None)
        number = free.pop(0) if number is None else number
        names[number] = names[number] if names[number][0] == "<" else f"<{role}>"
        roles[f"{role}_token"] = names[number]
    raw = Tokenizer(models.WordLevel({text: i for i, text in names.items()}, roles["unk_token"]))
    raw.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    end = roles["eos_token"]
    special = [(end, next(i for i, text in names.items() if text == end))]
    raw.post_processor = processors.TemplateProcessing(
        single=f"$A {end}", pair=f"$A {end} $B {end}", special_tokens=special
    )
    return PreTrainedTokenizerFast(tokenizer_object=raw, **roles)


def _vocabulary(config: Any) -> int:
    parts = [config, getattr(config, "text_config", None), _text(config)]
    sizes = [getattr(part, "vocab_size", None) for part in parts]
    return min((size for size in sizes if isinstance(size, int) and size > WORDS), default=64)


def _text(config: Any) -> Any:
    try:
        return config.get_text_config()
    except ValueError:  # several parts read text
        return config


def _special_ids(config: Any, size: int) -> dict[str, int]:
    text = _text(config)
    found: dict[str, int] = {}
    for name in {*vars(config), *vars(text)}:
        if not name.endswith(("token_id", "token_index")):
            continue
        number = getattr(text, name, getattr(config, name, None))
        number = number[0] if isinstance(number, list) and number else number
        if isinstance(number, int) and 0 <= number < size:
            found[name.removesuffix("_token_id")] = number
    return found


def subject_of(model: Any, inputs: Mapping[str, Any]) -> attlas.Subject:
    """The model as Attlas takes it, with a tokenizer or pixels that fit it."""
    texts, pixels = tokenizer(model.config), inputs.get("pixel_values")
    if model.main_input_name in OF_SOUNDS and model.main_input_name in inputs:
        heard = GivenSound(model.main_input_name, inputs)
        return attlas.Subject(model, SimpleNamespace(tokenizer=texts, feature_extractor=heard))
    if pixels is None:
        return attlas.Subject(model, texts)
    picture = GivenPixels(inputs)
    both = GivenBoth(texts, picture, inputs)
    reads_text = "input_ids" in inputs
    return attlas.Subject(model, both if reads_text else picture)


def text_of(subject: attlas.Subject) -> Any:
    """An input of the kind that the model reads."""
    grey = Image.fromarray(np.full((32, 32, 3), 128, np.uint8))
    if subject.reads_images and not subject.reads_pairs:
        return grey
    if subject.sound_argument is not None:
        return subject.feature_extractor()
    known = subject.tokenizer
    special = set(known.all_special_tokens)
    words = [w for w in sorted(known.get_vocab(), key=known.get_vocab().get) if w not in special]
    is_pair = subject.task is not None and subject.task.name == "question answering"
    room = subject.max_tokens - (len(QUESTION) + 2 if is_pair else 1)
    words = [word for word in words[WORDS:] or words][: max(2, min(WORDS, room))]
    if subject.fills_masks:
        words[1] = known.mask_token
    text = " ".join(words)
    if subject.needs_pictures:
        return grey, text
    if subject.reads_pairs:
        return sample_objects(subject.model) if subject.reads_objects else grey, text
    return (" ".join(words[place] for place in QUESTION), text) if is_pair else text


def cells(model: Any, inputs: Mapping[str, Any]) -> dict[str, str] | None:
    """For each method whether it ran, was refused (why) or broke (where); None without a head."""
    try:
        subject = subject_of(model, inputs)
    except AttlasError as error:
        return {method.name: _refusal(error) for method in METHODS}
    if subject.task is None:
        return None
    text = text_of(subject)
    return {method.name: _cell(subject, text, method) for method in METHODS}


def _refusal(error: AttlasError) -> str:
    kind = UNDEFINED if isinstance(error, NotDefinedError) else REFUSED
    return f"{kind}: {first_line(str(error))}"


def _cell(subject: attlas.Subject, text: Any, method: Any) -> str:
    options = {name: value for name, value in FEW_STEPS.items() if name in method.options}
    prefix = "" if subject.has_decoder and subject.predicts_next else None
    try:
        with limited(LIMIT):
            found = attlas.explain(subject, text, method.name, prefix=prefix, **options)
    except AttlasError as error:
        return _refusal(error)
    except TimeoutError as error:
        return f"{LONG}: {first_line(str(error))}"
    except Exception as error:
        place = traceback.extract_tb(error.__traceback__)[-1]
        where = f"{place.filename.split('site-packages/')[-1].split('src/')[-1]}:{place.lineno}"
        return f"{RAW}: {type(error).__name__}: {first_line(str(error))} ({where})"
    return RAN if np.isfinite(found.scores).all() else f"{RAW}: scores that are not finite"
