"""Encoding one input of any kind (a text, a pair, a picture, both) as a batch of one."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from PIL import Image
from torch import Tensor

from attlas.errors import AttlasError, UnsupportedModelError, UsageError
from attlas.models.encoding import images
from attlas.models.encoding.images import Objects, feature_width, is_image, sample_objects
from attlas.models.encoding.inputs import Inputs, Stream, group_by_shape, stack
from attlas.models.encoding.pictures_in_text import has_pictures, split_pictures
from attlas.models.encoding.request import Request
from attlas.models.encoding.similarity import encode_compared
from attlas.models.encoding.text_inputs import are_alike, encode_alike, encode_text
from attlas.models.facts.model_facts import ModelFacts
from attlas.models.facts.stages import has_stages
from attlas.models.tap.call import Call
from attlas.models.tap.folding import fold_calls
from attlas.tokens import Tokens

# Arguments of models that write about more than a text, and cannot do without it.
_UNREAD = {
    *("protein_input_ids", "actions", "encoder_inputs_embeds"),
    *("flattened_patches", "visual_bbox"),  # Pix2Struct and UDOP
}
SAMPLE = "one of these"  # several tokens: attention over a single one is always 1
OTHER = "something else"


def encode_input(facts: ModelFacts, text: Any, request: Request) -> Inputs:
    """Encode one text, picture, or pair of both as a batch of one on the model's device."""
    if (facts.predicts_next and facts.reads_images) or facts.parameters & _UNREAD:
        raise UnsupportedModelError(
            f"{type(facts.model).__name__} cannot be explained: what it sees is no part of the "
            "text that it reads, as its patches are where a model has an image_token_id"
        )
    if facts.sound_argument is not None or facts.picture_argument is not None:
        return encode_text(facts, text, request)
    if facts.reads_pairs:
        return encode_pair(facts, text, request)
    if facts.compares:
        return encode_compared(facts, text, request)
    if facts.reads_images:
        return encode_image(facts, text)
    if facts.marks and (is_image(text) or isinstance(text, tuple)) and not has_pictures(text):
        split_pictures(text)  # says what is missing
    if is_image(text):
        raise UsageError(f"{facts.name} reads text, not pictures")
    return encode_text(facts, text, request)


def encode_inputs(
    facts: ModelFacts, texts: Sequence[Any], requests: Sequence[Request]
) -> list[tuple[list[int], Inputs]]:
    """Encode texts as batches of equal shape, each with the places of its texts.

    Plain texts that are alike are tokenized in one call; each is encoded as it is on its own.
    """
    if _reads_text_alone(facts) and are_alike(facts, texts, requests):
        with suppress(AttlasError):  # one by one, the error is that of the first text with one
            return encode_alike(facts, texts, requests)
    encoded = [encode_input(facts, text, its) for text, its in zip(texts, requests, strict=True)]
    groups = group_by_shape(encoded, max(len(encoded), 1))
    return [(group, stack([encoded[place] for place in group])) for group in groups]


def _reads_text_alone(facts: ModelFacts) -> bool:
    if facts.sound_argument is not None or facts.picture_argument is not None or facts.marks:
        return False
    seen = facts.reads_pairs or facts.compares or facts.reads_images
    return not seen and not facts.parameters & _UNREAD


def sample_input(facts: ModelFacts) -> Any:
    """A small input of the kind that this model reads."""
    if facts.sound_argument is not None:
        rate = getattr(facts.feature_extractor, "sampling_rate", 16000)
        return np.sin(np.arange(rate) / 20.0), rate
    if facts.reads_objects:
        return SAMPLE, sample_objects(facts.model)
    if facts.reads_images or facts.reads_pairs or facts.needs_pictures:
        picture = Image.new("RGB", (32, 32), "grey")
        return (picture, SAMPLE) if facts.reads_pairs or facts.needs_pictures else picture
    if facts.compares:
        return SAMPLE, OTHER
    text = f"{facts.tokenizer.mask_token} {SAMPLE}" if facts.fills_masks else SAMPLE
    return (text, text) if facts.reads_two_texts else text


def sample_inputs(facts: ModelFacts) -> Inputs:
    """The sample as a batch of one; a decoder gets a prefix, so that nothing is generated."""
    prefix = SAMPLE if facts.has_decoder else ""
    return encode_input(facts, sample_input(facts), Request(prefix=prefix, truncate=True))


def encode_image(facts: ModelFacts, image: Any) -> Inputs:
    """Encode one picture as a batch of one; its patches are the tokens."""
    pixels = _pixels_of(facts, image)
    arguments = {"pixel_values": pixels}
    if has_stages(facts.model):
        counts = [queries for _, queries, _ in _count_places(facts, arguments)]
        return Inputs.of_image(pixels, images.staged_tokens(facts.model, pixels, counts), image)
    size = images.patch_size(facts.model)
    count = _count_patches(facts, arguments)
    try:
        tokens = images.patch_tokens(pixels, size, count)
    except UnsupportedModelError as problem:
        raise UnsupportedModelError(f"{type(facts.model).__name__}: {problem}") from problem
    return Inputs.of_image(pixels, tokens, image)


def encode_pair(facts: ModelFacts, pair: Any, request: Request) -> Inputs:
    """Encode a text and a picture (or objects) as a batch of one; the text comes first."""
    text, seen = _split_pair(pair, facts.reads_objects)
    inputs = encode_text(facts, text, request)
    if facts.reads_objects:
        return _add_picture(inputs, pair, _object_arguments(facts, seen), seen.tokens())
    arguments = {"pixel_values": _pixels_of(facts, seen)}
    count = _count_patches(facts, {**inputs.arguments, **arguments})
    size = images.patch_size(facts.model)
    patches = images.patch_tokens(arguments["pixel_values"], size, count)
    return _add_picture(inputs, pair, arguments, patches)


def _pixels_of(facts: ModelFacts, image: Any) -> Tensor:
    """The pixels of a picture, on the model's device and in its precision."""
    return images.prepare(facts.image_processor, image).to(facts.device, facts.dtype)


def _count_patches(facts: ModelFacts, arguments: Mapping[str, Tensor]) -> int:
    """How many positions the first attention within the picture covers."""
    places = _count_places(facts, arguments)
    return next((keys for kind, _, keys in places if kind == "vision"), places[0][2])


def _count_places(facts: ModelFacts, arguments: Mapping[str, Tensor]) -> list[tuple[str, int, int]]:
    """The kind of each attention, and its numbers of queries and keys."""

    def count(call: Call) -> tuple[str, int, int]:
        return call.site.kind, call.weights.shape[-2], call.weights.shape[-1]

    with fold_calls(facts.model, count) as places, torch.no_grad():
        try:
            facts.model(**arguments)
        except (TypeError, AttributeError) as problem:  # it needs more than pixels and a text
            raise UnsupportedModelError.of_failure(facts.model, problem) from problem
    return places


def _add_picture(
    inputs: Inputs, pair: Any, arguments: Mapping[str, Tensor], more: Tokens
) -> Inputs:
    """Append the tokens of a picture to the inputs of a text; `arguments` bring them in."""
    tokens = inputs.tokens[0].followed_by(more)
    return replace(
        inputs,
        arguments={**inputs.arguments, **arguments},
        tokens=(tokens,),
        texts=(pair,),
        picture=Stream(next(iter(arguments)), len(tokens) - len(more), len(tokens)),
    )


def _split_pair(pair: Any, objects: bool) -> tuple[Any, Any]:
    """The text of a pair, and its picture or objects."""
    members = list(pair) if isinstance(pair, tuple) and len(pair) == 2 else []
    seen = [isinstance(each, Objects) if objects else images.is_image(each) for each in members]
    if sum(seen) != 1 or isinstance(members[seen.index(False)], tuple):
        needed = "Objects(features, boxes)" if objects else "a picture"
        given = ", ".join(type(each).__name__ for each in members or [pair])
        raise UsageError(
            f"this model reads a text and {needed}: give a pair of the two, not {given}"
        )
    return members[seen.index(False)], members[seen.index(True)]


def _object_arguments(facts: ModelFacts, objects: Objects) -> dict[str, Tensor]:
    needed, given = feature_width(facts.model), objects.features.shape[1]
    if given != needed:
        raise UsageError(f"this model needs {needed} features for each object, not {given}")
    arrays = {"visual_feats": objects.features, "visual_pos": objects.boxes}
    return {
        name: torch.as_tensor(array)[None].to(facts.device, facts.dtype)
        for name, array in arrays.items()
    }
