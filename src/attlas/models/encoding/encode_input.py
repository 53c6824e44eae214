"""From one input of any kind (a text, a pair, a picture, both) to a batch of one."""

from typing import Any

from PIL import Image

from attlas.errors import UsageError
from attlas.models.encoding.images import is_image
from attlas.models.encoding.inputs import Inputs
from attlas.models.encoding.objects import sample_objects
from attlas.models.encoding.picture_inputs import encode_image, encode_pair
from attlas.models.encoding.request import Request
from attlas.models.encoding.text_inputs import encode_text
from attlas.models.facts.model_facts import ModelFacts

SAMPLE = "one of these"  # more than one token, or any attention would look the same


def encode_input(facts: ModelFacts, text: Any, request: Request) -> Inputs:
    """One text (or picture, or a pair of both) as a batch of one, on the model's device."""
    if facts.reads_pairs:
        return encode_pair(facts, text, request)
    if facts.reads_images:
        return encode_image(facts, text)
    if is_image(text):
        raise UsageError(f"{facts.name} reads text, not pictures")
    return encode_text(facts, text, request)


def sample_input(facts: ModelFacts) -> Any:
    """A small input of the kind that this model reads."""
    if facts.reads_objects:
        return SAMPLE, sample_objects(facts.model)
    if facts.reads_images or facts.reads_pairs:
        picture = Image.new("RGB", (32, 32), "grey")
        return (picture, SAMPLE) if facts.reads_pairs else picture
    text = f"{facts.tokenizer.mask_token} {SAMPLE}" if facts.fills_masks else SAMPLE
    return (text, text) if facts.task and facts.task.name == "question answering" else text


def sample_inputs(facts: ModelFacts) -> Inputs:
    """The sample as a batch of one; a decoder is given a prefix, so that it writes nothing."""
    prefix = SAMPLE if facts.has_decoder else ""
    return encode_input(facts, sample_input(facts), Request(prefix=prefix, truncate=True))
