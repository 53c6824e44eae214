"""From pictures to patches."""

from io import BytesIO
from types import SimpleNamespace

import numpy as np
import pytest
import tiny
import torch
from PIL import Image

from attlas.errors import UnsupportedModelError, UsageError
from attlas.models.images import is_image, patch_size, patch_tokens, prepare


@pytest.fixture(scope="module")
def vit():
    return tiny.subject_parts("image classification")


def test_what_is_an_image():
    assert is_image(Image.new("L", (2, 2)))
    assert is_image(np.zeros((2, 2)))
    assert is_image(np.zeros((2, 2, 3)))
    assert not is_image(np.zeros(2))
    assert not is_image("picture.png")


@pytest.mark.parametrize("mode", ["RGB", "L", "1", "P", "RGBA", "LA", "CMYK", "I;16"])
def test_pictures_of_every_mode(vit, mode):
    assert prepare(vit[1], Image.new(mode, (50, 40))).shape == (1, 3, 32, 32)


@pytest.mark.parametrize("shape", [(40, 50), (40, 50, 1), (40, 50, 3), (40, 50, 4)])
def test_arrays(vit, shape):
    pixels = prepare(vit[1], np.full(shape, 255, dtype=np.uint8))
    assert pixels.shape == (1, 3, 32, 32)
    white = prepare(vit[1], Image.new("RGB", (50, 40), "white"))
    assert torch.equal(pixels, white)


@pytest.mark.parametrize(
    "array",
    [
        np.zeros((40, 50, 3), dtype=np.float32),
        np.zeros((40, 50), dtype=np.int64),
        np.zeros((3, 40, 50), dtype=np.uint8),
        np.zeros((40, 50, 2), dtype=np.uint8),
    ],
)
def test_arrays_that_are_no_pictures(vit, array):
    with pytest.raises(UsageError, match="of uint8, not "):
        prepare(vit[1], array)


@pytest.mark.parametrize("given", ["picture.png", None, 3, [1, 2], torch.zeros(3, 4, 4)])
def test_what_is_no_picture(vit, given):
    with pytest.raises(UsageError, match=f"reads pictures.* not {type(given).__name__}"):
        prepare(vit[1], given)


def test_an_empty_picture(vit):
    for empty in (Image.new("RGB", (0, 4)), np.zeros((0, 4, 3), dtype=np.uint8)):
        with pytest.raises(UsageError, match="the picture is empty"):
            prepare(vit[1], empty)


def test_half_a_file(vit):
    whole = BytesIO()
    noise = np.random.default_rng(0).integers(0, 255, (40, 50, 3), dtype=np.uint8)
    Image.fromarray(noise).save(whole, "PNG")
    half = Image.open(BytesIO(whole.getvalue()[: len(whole.getvalue()) // 2]))
    with pytest.raises(UsageError, match="cannot be read"):
        prepare(vit[1], half)


def test_patch_size(vit):
    assert patch_size(vit[0]) == 8


@pytest.mark.parametrize(
    ("config", "size"),
    [
        ({"patch_size": (8, 8)}, 8),
        ({"vision_config": SimpleNamespace(patch_size=4), "patch_size": 2}, 4),
        ({"patch_size": [8, 4]}, None),
        ({}, None),
    ],
)
def test_patch_size_of_a_configuration(config, size):
    model = torch.nn.Module()
    model.config = SimpleNamespace(**config)
    if size is not None:
        assert patch_size(model) == size
        return
    with pytest.raises(UnsupportedModelError, match="no single patch size"):
        patch_size(model)


def test_patches_row_by_row():
    tokens = patch_tokens(torch.zeros(1, 3, 16, 24), size=8, count=8)
    assert tokens.texts == ("[CLS]", "[1]", "0,0", "0,1", "0,2", "1,0", "1,1", "1,2")
    assert tokens.special == (True, True) + (False,) * 6
    assert tokens.grid == (2, 3)
    assert set(tokens.segments) == {"image"}
    assert set(tokens.offsets) == {None}


def test_patches_without_anything_before_them():
    assert patch_tokens(torch.zeros(1, 3, 16, 16), size=8, count=4).special == (False,) * 4


def test_fewer_tokens_than_patches():
    with pytest.raises(UnsupportedModelError, match=r"over 3 tokens, fewer than the 2 × 2"):
        patch_tokens(torch.zeros(1, 3, 16, 16), size=8, count=3)
