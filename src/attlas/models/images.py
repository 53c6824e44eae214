"""From a picture to patches with their places."""

from typing import Any

import numpy as np
from PIL import Image
from torch import Tensor, nn

from attlas.errors import UnsupportedModelError, UsageError
from attlas.tokens import Tokens


def is_image(given: Any) -> bool:
    """Whether this is a picture: a PIL image, or an array of rows, columns and colours."""
    return isinstance(given, Image.Image) or (isinstance(given, np.ndarray) and given.ndim in (2, 3))


def prepare(processor: Any, image: Any) -> Tensor:
    """The pixels as the model wants them, `[1, colour, row, column]`."""
    if not is_image(image):
        raise UsageError(
            f"this model reads pictures: give a PIL image or an array, not {type(image).__name__}"
        )
    picture = Image.fromarray(image) if isinstance(image, np.ndarray) else image
    pixels: Tensor = processor(images=picture.convert("RGB"), return_tensors="pt")["pixel_values"]
    return pixels


def patch_size(model: nn.Module) -> int:
    """The side of a patch in pixels."""
    config: Any = model.config
    config = getattr(config, "vision_config", config)
    size = getattr(config, "patch_size", None)
    if isinstance(size, (tuple, list)):
        size = size[0] if len(set(size)) == 1 else None
    if not isinstance(size, int):
        raise UnsupportedModelError(
            f"{type(model).__name__} names no single patch size, so its tokens have no place in "
            "the picture"
        )
    return size


def patch_tokens(pixels: Tensor, size: int, count: int) -> Tokens:
    """The patches of a picture as `count` tokens: those that come first and are no patch are special."""
    rows, columns = pixels.shape[-2] // size, pixels.shape[-1] // size
    extra = count - rows * columns
    if extra < 0:
        raise UnsupportedModelError(
            f"the attention is over {count} tokens, fewer than the {rows} × {columns} patches"
        )
    texts = [f"[{i}]" if i else "[CLS]" for i in range(extra)]
    texts += [f"{row},{column}" for row in range(rows) for column in range(columns)]
    special = (True,) * extra + (False,) * (rows * columns)
    return Tokens(
        tuple(texts), (None,) * count, special, ("image",) * count, grid=(rows, columns)
    )
