"""The pictures that a model saw: checked, saved, and as PNGs for views."""

from base64 import b64encode
from collections.abc import Mapping
from io import BytesIO
from typing import Any

import numpy as np
from PIL import Image

from attlas.errors import UsageError
from attlas.shapes import Picture
from attlas.tokens import PICTURE, Tokens

LONGEST_SIDE = 512  # in pixels, of a picture in a view
_NAME = "picture"  # in a file; behind it the segment, unless there is but one picture


def check_pictures(pictures: Mapping[str, Picture]) -> None:
    """Refuse what is not a picture of red, green and blue bytes."""
    for each in pictures.values():
        if each.dtype != np.uint8 or each.ndim != 3 or each.shape[2] != 3 or not each.size:
            raise UsageError(
                "a picture is uint8 of [row, column, colour] with three colours, "
                f"not {each.dtype} of {list(each.shape)}"
            )


def picture_arrays(pictures: Mapping[str, Picture]) -> dict[str, Any]:
    """The arrays to save: each picture by its segment."""
    return {
        _NAME if segment == PICTURE else f"{_NAME} {segment}": picture
        for segment, picture in pictures.items()
    }


def read_pictures(arrays: Mapping[str, Any]) -> dict[str, Picture]:
    """The pictures among the arrays of a file."""
    return {
        name.removeprefix(_NAME).strip() or PICTURE: array
        for name, array in arrays.items()
        if name.startswith(_NAME)
    }


def picture_rows(
    tokens: Tokens, pictures: Mapping[str, Picture] | None = None
) -> list[dict[str, Any]]:
    """Each picture as JSON, for views: its segment, its grid and its PNG, where they are known."""
    known = pictures or {}
    return [
        {
            "segment": segment,
            "grid": list(tokens.grids[segment]) if segment in tokens.grids else None,
            "image": picture_uri(known.get(segment)),
        }
        for segment in dict.fromkeys([*tokens.grids, *known])
    ]


def picture_uri(picture: Picture | None) -> str | None:
    """The picture as a PNG in a `data:` address, made smaller if it is large."""
    if picture is None:
        return None
    shown = Image.fromarray(picture)
    shown.thumbnail((LONGEST_SIDE, LONGEST_SIDE))
    stream = BytesIO()
    shown.save(stream, format="PNG")
    return "data:image/png;base64," + b64encode(stream.getvalue()).decode("ascii")
