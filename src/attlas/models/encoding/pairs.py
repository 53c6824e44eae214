"""Texts with pictures: a pair of both, in either order, as one input of two streams."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor, nn

from attlas.errors import UsageError
from attlas.models.asking.ask import encode_text
from attlas.models.asking.resolve import Request
from attlas.models.encoding import images
from attlas.models.encoding.inputs import Inputs, Stream
from attlas.tokens import Tokens

if TYPE_CHECKING:
    from attlas.models.subject import Subject


@dataclass(frozen=True, eq=False)
class Objects:
    """What a detector found in a picture: the features of each object, and its box.

    A box is left, top, right, bottom, as shares of the picture's width and height.
    """

    features: np.ndarray  # `[object, feature]`
    boxes: np.ndarray  # `[object, 4]`

    def __post_init__(self) -> None:
        shapes = self.features.shape, self.boxes.shape
        if len(shapes[0]) != 2 or shapes[1] != (shapes[0][0], 4) or not shapes[0][0]:
            raise UsageError(
                "objects are features of [object, feature] and boxes of [object, 4], one at least, "
                f"not {list(shapes[0])} and {list(shapes[1])}"
            )

    def __len__(self) -> int:
        return len(self.features)

    def tokens(self) -> Tokens:
        """The objects as tokens, by their numbers."""
        count = len(self)
        texts = tuple(f"object {number}" for number in range(count))
        return Tokens(texts, (None,) * count, (False,) * count, ("image",) * count)


def sample_objects(model: nn.Module) -> Objects:
    """Three objects of the width that a model takes."""
    features = np.linspace(-1, 1, 3 * _width(model)).reshape(3, -1)
    return Objects(features, np.tile([0.0, 0.0, 0.5, 0.5], (3, 1)))


def _width(model: nn.Module) -> int:
    """How many features of an object a model takes."""
    config: Any = model.config
    return int(config.visual_feat_dim)


def encode_pair(subject: "Subject", pair: Any, request: Request) -> Inputs:
    """A text and what is seen beside it as a batch of one: the text's tokens first."""
    text, seen = _take_apart(pair, subject.reads_objects)
    inputs = encode_text(subject, text, request)
    if subject.reads_objects:
        return _with(inputs, pair, _objects(subject, seen), seen.tokens())
    given = {"pixel_values": subject.pixels_of(seen)}
    count = subject.count_patches({**inputs.arguments, **given})
    size = images.patch_size(subject.model)
    return _with(inputs, pair, given, images.patch_tokens(given["pixel_values"], size, count))


def _with(inputs: Inputs, pair: Any, given: Mapping[str, Tensor], more: Tokens) -> Inputs:
    """A text with what is seen beside it, which the first of the arguments brings in."""
    tokens = inputs.tokens[0].followed_by(more)
    return replace(
        inputs,
        arguments={**inputs.arguments, **given},
        tokens=(tokens,),
        texts=(pair,),
        picture=Stream(next(iter(given)), len(tokens) - len(more), len(tokens)),
    )


def _take_apart(pair: Any, objects: bool) -> tuple[Any, Any]:
    """The text of a pair, and what is seen."""
    parts = list(pair) if isinstance(pair, tuple) and len(pair) == 2 else []
    seen = [isinstance(part, Objects) if objects else images.is_image(part) for part in parts]
    if sum(seen) != 1 or isinstance(parts[seen.index(False)], tuple):
        wanted = "Objects(features, boxes)" if objects else "a picture"
        given = ", ".join(type(part).__name__ for part in parts or [pair])
        raise UsageError(f"this model reads a text and {wanted}: give a pair of both, not {given}")
    return parts[seen.index(False)], parts[seen.index(True)]


def _objects(subject: "Subject", objects: Objects) -> dict[str, Tensor]:
    weight = next(subject.model.parameters())
    wanted, given = _width(subject.model), objects.features.shape[1]
    if given != wanted:
        raise UsageError(f"an object has {wanted} features for this model, not {given}")
    arrays = {"visual_feats": objects.features, "visual_pos": objects.boxes}
    return {
        name: torch.as_tensor(array)[None].to(weight.device, weight.dtype)
        for name, array in arrays.items()
    }
