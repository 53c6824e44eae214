"""Objects: what a detector found in a picture, for models that read them with a text."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from torch import nn

from attlas.errors import UsageError
from attlas.tokens import Tokens


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
