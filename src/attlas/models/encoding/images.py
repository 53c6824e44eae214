"""Pictures: their pixels as a model takes them, their patches or the objects in them as tokens."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image
from torch import Tensor, nn

from attlas.errors import UnsupportedModelError, UsageError
from attlas.mathematics.squares import squares_of
from attlas.tokens import PICTURE, Tokens


def is_image(given: Any) -> bool:
    """Whether this is a picture: a PIL image, or an array with two or three axes."""
    return isinstance(given, Image.Image) or (
        isinstance(given, np.ndarray) and given.ndim in (2, 3)
    )


def prepare(processor: Any, image: Any) -> Tensor:
    """The pixels as the processor prepares them, `[1, colour, row, column]`."""
    if not is_image(image):
        raise UsageError(
            f"this model reads pictures: give a PIL image or an array, not {type(image).__name__}"
        )
    if hasattr(processor, "get_vocab"):
        raise UsageError(
            f"pictures are prepared by an image processor, not by {type(processor).__name__}"
        )
    try:
        picture = as_picture(image).convert("RGB")
    except OSError as problem:
        raise UsageError(f"the picture cannot be read: {problem}") from problem
    if 0 in picture.size:
        raise UsageError(f"the picture is empty: {picture.width} × {picture.height} pixels")
    pixels: Tensor = processor(images=picture, return_tensors="pt")["pixel_values"]
    if pixels.ndim == 3:  # SigLIP 2
        raise UnsupportedModelError(
            f"{type(processor).__name__} cuts the picture into {pixels.shape[1]} patches itself: "
            "models that read patches of any number are not explained, those that read pixels are"
        )
    return pixels


def as_picture(image: Any) -> Image.Image:
    """A picture that was given as an array as a PIL image."""
    if isinstance(image, Image.Image):
        return image
    if isinstance(image, (str, Path)):
        try:
            with Image.open(image) as opened:
                return opened.convert("RGB")
        except (OSError, Image.DecompressionBombError) as problem:
            raise UsageError(f"the picture {image} cannot be read: {problem}") from problem
    if not is_image(image):
        raise UsageError(
            f"a picture is a path, a PIL image or an array, not {type(image).__name__}"
        )
    if image.dtype != np.uint8 or image.shape[2:] not in ((), (1,), (3,), (4,)):
        raise UsageError(
            "a picture as an array is [row, column] or [row, column, colour] of uint8, "
            f"not {list(image.shape)} of {image.dtype}"
        )
    if 0 in image.shape:
        raise UsageError(f"the picture is empty: an array of {list(image.shape)}")
    return Image.fromarray(image[:, :, 0] if image.shape[2:] == (1,) else image)


def patch_size(model: nn.Module) -> int:
    """The side length of a patch in pixels."""
    config: Any = model.config
    config = getattr(config, "vision_config", config)
    size = getattr(config, "patch_size", None)
    if isinstance(size, (tuple, list)):
        size = size[0] if len(set(size)) == 1 else None
    if not isinstance(size, int):
        raise UnsupportedModelError(
            f"{type(model).__name__} has no single patch size, so its tokens have no place in "
            "the picture"
        )
    return size


def patch_tokens(pixels: Tensor, size: int, count: int) -> Tokens:
    """The patches of a picture as `count` tokens; extra tokens come first and are special."""
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
        tuple(texts), (None,) * count, special, (PICTURE,) * count, grids={PICTURE: (rows, columns)}
    )


def staged_tokens(model: nn.Module, pixels: Tensor, counts: Sequence[int]) -> Tokens:
    """The patches of the first stage as tokens; `counts` are the queries of each attention.

    A token that enters at a later stage, as that of PVT and CvT, comes first and is special.
    """
    height, width = pixels.shape[-2:]
    sides = [side for side in range(1, height + 1) if height % side == width % side == 0]
    side = next((s for s in sides if (height // s) * (width // s) == counts[0]), None)
    if side is None:
        raise UnsupportedModelError(
            f"{type(model).__name__} reads a picture of {height} × {width} pixels as {counts[0]} "
            "tokens, which are no squares of it"
        )
    grid = height // side, width // side
    extra = 0 if squares_of(grid, counts[-1]) is not None else 1
    return patch_tokens(pixels, side, counts[0] + extra)


def as_seen(processor: Any, pixels: Tensor) -> np.ndarray:
    """Turn pixels `[colour, row, column]` back into a picture, bytes `[row, column, colour]`.

    It shows what the model sees, cut and scaled by the processor, so that the patches fit on it.
    """
    wide = pixels.detach().float().cpu()
    mean, spread = (getattr(processor, f"image_{name}", None) for name in ("mean", "std"))
    if mean is not None and spread is not None and getattr(processor, "do_normalize", True):
        wide = wide * wide.new_tensor(spread)[:, None, None] + wide.new_tensor(mean)[:, None, None]
    else:
        low, high = wide.min(), wide.max()
        wide = (wide - low) / (high - low).clamp_min(1e-12)
    seen: np.ndarray = (wide.clamp(0, 1) * 255).round().byte().permute(1, 2, 0).numpy()
    return seen


@dataclass(frozen=True, eq=False)
class Objects:
    """Objects that a detector found in a picture: their features and boxes.

    A box is (left, top, right, bottom), in shares of the picture's width and height.
    """

    features: np.ndarray  # `[object, feature]`
    boxes: np.ndarray  # `[object, 4]`

    def __post_init__(self) -> None:
        shapes = self.features.shape, self.boxes.shape
        if len(shapes[0]) != 2 or shapes[1] != (shapes[0][0], 4) or not shapes[0][0]:
            raise UsageError(
                "objects need features [object, feature] and boxes [object, 4], at least one each, "
                f"not {list(shapes[0])} and {list(shapes[1])}"
            )

    def __len__(self) -> int:
        return len(self.features)

    def tokens(self) -> Tokens:
        """The objects as tokens, named by number."""
        count = len(self)
        texts = tuple(f"object {number}" for number in range(count))
        return Tokens(texts, (None,) * count, (False,) * count, ("image",) * count)


def sample_objects(model: nn.Module) -> Objects:
    """Three made-up objects with the number of features that a model takes."""
    features = np.linspace(-1, 1, 3 * feature_width(model)).reshape(3, -1)
    return Objects(features, np.tile([0.0, 0.0, 0.5, 0.5], (3, 1)))


def feature_width(model: nn.Module) -> int:
    """How many features a model takes for each object."""
    config: Any = model.config
    return int(config.visual_feat_dim)
