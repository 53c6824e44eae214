"""The picture that a model saw: checked, saved, and as a PNG for views."""

from base64 import b64encode
from io import BytesIO
from typing import Any

import numpy as np
from PIL import Image

from attlas.errors import UsageError
from attlas.shapes import Picture

LONGEST_SIDE = 512  # in pixels, of a picture in a view


def check_picture(picture: Picture | None) -> None:
    """Refuse what is not a picture of red, green and blue bytes."""
    if picture is None:
        return
    if picture.dtype != np.uint8 or picture.ndim != 3 or picture.shape[2] != 3 or not picture.size:
        raise UsageError(
            "a picture is uint8 of [row, column, colour] with three colours, "
            f"not {picture.dtype} of {list(picture.shape)}"
        )


def picture_arrays(picture: Picture | None) -> dict[str, Any]:
    """The arrays to save: the picture, if there is one."""
    return {} if picture is None else {"picture": picture}


def picture_uri(picture: Picture | None) -> str | None:
    """The picture as a PNG in a `data:` address, made smaller if it is large."""
    if picture is None:
        return None
    shown = Image.fromarray(picture)
    shown.thumbnail((LONGEST_SIDE, LONGEST_SIDE))
    stream = BytesIO()
    shown.save(stream, format="PNG")
    return "data:image/png;base64," + b64encode(stream.getvalue()).decode("ascii")
