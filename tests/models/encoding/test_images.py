"""From pictures to patches."""

from io import BytesIO
from types import SimpleNamespace

import numpy as np
import pytest
import tiny
import torch
from PIL import Image

import attlas
from attlas.errors import UnsupportedModelError, UsageError
from attlas.models.encoding.images import as_seen, is_image, patch_size, patch_tokens, prepare


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
    assert tokens.grids == {"image": (2, 3)}
    assert set(tokens.segments) == {"image"}
    assert set(tokens.offsets) == {None}


def test_patches_without_anything_before_them():
    assert patch_tokens(torch.zeros(1, 3, 16, 16), size=8, count=4).special == (False,) * 4


def test_fewer_tokens_than_patches():
    with pytest.raises(UnsupportedModelError, match=r"over 3 tokens, fewer than the 2 × 2"):
        patch_tokens(torch.zeros(1, 3, 16, 16), size=8, count=3)


def noise(rows, columns, seed=0):
    return np.random.default_rng(seed).integers(0, 256, (rows, columns, 3), dtype=np.uint8)


def test_what_is_seen_of_a_picture_of_the_right_size_is_the_picture(vit):
    processor = vit[1]
    given = noise(32, 32)
    seen = as_seen(processor, prepare(processor, given)[0])
    assert seen.dtype == np.uint8
    np.testing.assert_array_equal(seen, given)


def test_what_is_seen_undoes_each_colour_by_its_own_mean_and_spread():
    processor = SimpleNamespace(image_mean=[0.5, 0.25, 0.0], image_std=[0.5, 0.25, 2.0])
    pixels = torch.tensor([-1.0, 1.0, 0.1])[:, None, None].expand(3, 2, 1)
    seen = as_seen(processor, pixels)
    assert seen.shape == (2, 1, 3)
    assert seen[0, 0].tolist() == [0, round(0.5 * 255), round(0.2 * 255)]


def test_what_is_seen_where_nothing_is_known_of_it_spans_black_to_white():
    for known in ({}, {"image_mean": [9.0], "image_std": [9.0], "do_normalize": False}):
        seen = as_seen(SimpleNamespace(**known), torch.tensor([[[2.0, 3.0, 6.0]]]))
        assert seen[0, :, 0].tolist() == [0, round(255 / 4), 255]
    assert not as_seen(SimpleNamespace(), torch.full((1, 2, 2), 7.0)).any()


def test_an_explanation_has_the_picture_that_the_model_saw(vit):
    pictures = [noise(32, 32, seed) for seed in range(3)]
    found = attlas.explain(attlas.Subject(*vit), pictures, "raw_attention")
    for one, given in zip(found, pictures, strict=True):
        np.testing.assert_array_equal(one.pictures["image"], given)


def test_an_explanation_of_a_text_has_none():
    subject = attlas.Subject(*tiny.subject_parts("sequence classification"))
    assert attlas.explain(subject, "a cat", "raw_attention").pictures == {}


def test_a_tokenizer_prepares_no_picture():
    with pytest.raises(UsageError, match="prepared by an image processor, not by"):
        prepare(tiny.tokenizer("bpe"), Image.new("RGB", (8, 8)))
