"""Objects: what a detector found in a picture, for models that read a text beside them."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from torch import nn

from attlas.errors import UsageError
from attlas.tokens import Tokens


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
    features = np.linspace(-1, 1, 3 * feature_width(model)).reshape(3, -1)
    return Objects(features, np.tile([0.0, 0.0, 0.5, 0.5], (3, 1)))


def feature_width(model: nn.Module) -> int:
    """How many features of an object a model takes."""
    config: Any = model.config
    return int(config.visual_feat_dim)
