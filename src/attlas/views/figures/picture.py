"""A picture with its patches coloured by score, each as strong as its score."""

from base64 import b64decode
from collections.abc import Mapping
from io import BytesIO
from typing import Any

import numpy as np

from attlas.errors import UsageError
from attlas.views.colours import background, pole, strength
from attlas.views.figures import figure
from attlas.views.figures.paper import PAPER, Room, say, shorten
from attlas.views.units import limit, patches, words_or_tokens

Payload = Mapping[str, Any]
_START = "data:image/png;base64,"
_SHARE = 0.75  # of the strongest patch, that is colour


@figure("explanation", "picture")
def picture(room: Room, payload: Payload, *, number: int = 0) -> Any:
    """One of the pictures of an explanation, with the scores of its patches over it."""
    found = patches(payload, words_or_tokens(payload))
    if not -len(found) <= number < len(found) or not found:
        raise UsageError(f"no picture {number}: the explanation has {len(found)} with patches")
    seen, cells = found[number]
    signed, top = payload["signed"], limit(cells)
    rows, columns = seen["grid"]
    shares = np.array([strength(cell.score, top) for cell in cells]).reshape(rows, columns)
    image = _read(seen["image"])
    form = image.shape[0] / image.shape[1] if image is not None else rows / columns
    side = min(room.width, 3.3)
    spare = (room.width - side) / 2
    axes = room.axes(side * form, left=spare, right=spare, top=0.2)
    extent = (0.0, 1.0, form, 0.0)
    if image is not None:
        axes.imshow(image, extent=extent, aspect="auto")
    paint = pole if image is not None else background
    hues = [[paint(share, signed, PAPER) for share in row] for row in shares]
    clear = np.abs(shares) * _SHARE if image is not None else np.ones_like(shares)
    laid = np.dstack([np.array(hues, dtype=float) / 255, clear])
    axes.imshow(laid, extent=extent, aspect="auto", interpolation="nearest")
    axes.set(xlim=(0, 1), ylim=(form, 0), xticks=[], yticks=[])
    axes.set_axis_off()
    say(axes, title=f"{shorten(payload['method'])}, for {shorten(payload['target']['name'])}")
    return axes


def _read(uri: str | None) -> Any:
    """The dots of a picture that a payload holds, in grey so that colours are scores."""
    from PIL import Image

    if not uri or not uri.startswith(_START):
        return None
    with Image.open(BytesIO(b64decode(uri.removeprefix(_START)))) as opened:
        grey = np.asarray(opened.convert("L"), dtype=float) / 255
    return np.dstack([0.25 + 0.75 * grey] * 3)
