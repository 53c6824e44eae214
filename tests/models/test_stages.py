"""Models whose tokens become fewer from stage to stage: Swin, Hiera, PVT, SegFormer and others."""

import numpy as np
import pytest
import torch
import transformers
from PIL import Image
from transformers import ViTImageProcessorPil

import attlas
from attlas.errors import UnsupportedModelError

WINDOW, SIDE = 2, 8  # of Swin: patches in a window and in the picture, along one axis
SIZE = 32  # pixels of a picture, along one axis
SETTINGS = {
    "Swin": {
        "image_size": SIZE,
        "patch_size": 4,
        "embed_dim": 8,
        "depths": [2, 1],
        "num_heads": [2, 2],
        "window_size": WINDOW,
    },
    "Swinv2": {
        "image_size": SIZE,
        "patch_size": 4,
        "embed_dim": 8,
        "depths": [2, 1],
        "num_heads": [2, 2],
        "window_size": WINDOW,
    },
    "Hiera": {
        "image_size": [SIZE, SIZE],
        "patch_stride": [4, 4],
        "embed_dim": 8,
        "depths": [1, 1, 1],
        "num_heads": [1, 1, 2],
        "num_query_pool": 2,
        "masked_unit_size": [4, 4],
        "masked_unit_attention": [True, True, False],
    },
    "Pvt": {
        "image_size": SIZE,
        "depths": [1, 1],
        "num_encoder_blocks": 2,
        "hidden_sizes": [8, 8],
        "num_attention_heads": [1, 2],
        "sequence_reduction_ratios": [4, 1],
        "patch_sizes": [4, 2],
        "strides": [4, 2],
        "mlp_ratios": [1, 1],
    },
    "Segformer": {
        "image_size": SIZE,
        "num_encoder_blocks": 2,
        "depths": [1, 1],
        "sr_ratios": [4, 1],
        "hidden_sizes": [8, 8],
        "patch_sizes": [7, 3],
        "strides": [4, 2],
        "num_attention_heads": [1, 2],
        "mlp_ratios": [1, 1],
    },
    "Cvt": {
        "patch_sizes": [7, 3],
        "patch_stride": [4, 2],
        "patch_padding": [2, 1],
        "embed_dim": [8, 8],
        "num_heads": [1, 2],
        "depth": [1, 2],
        "mlp_ratio": [1.0, 1.0],
        "attention_drop_rate": [0.0, 0.0],
        "drop_rate": [0.0, 0.0],
        "drop_path_rate": [0.0, 0.0],
        "qkv_bias": [True, True],
        "cls_token": [False, True],
        "qkv_projection_method": ["dw_bn", "dw_bn"],
        "kernel_qkv": [3, 3],
        "padding_kv": [1, 1],
        "stride_kv": [2, 2],
        "padding_q": [1, 1],
        "stride_q": [1, 1],
    },
}


def build(family):
    torch.manual_seed(0)
    config = getattr(transformers, f"{family}Config")(**SETTINGS[family], num_labels=3)
    config._attn_implementation = "eager"
    model = getattr(transformers, f"{family}ForImageClassification")(config).eval()
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=0.3)
    size = {"height": SIZE, "width": SIZE}
    return attlas.Subject(model, ViTImageProcessorPil(size=size))


@pytest.fixture(scope="module")
def subjects():
    return {family: build(family) for family in SETTINGS}


@pytest.fixture(scope="module")
def picture():
    drawn = np.random.default_rng(0).integers(0, 256, (SIZE, SIZE, 3), dtype=np.uint8)
    return Image.fromarray(drawn)


def window_weights(subject, picture):
    """What each attention module of a Swin returns, `[window, head, query, key]`."""
    found = []
    modules = [m for m in subject.model.modules() if type(m).__name__ == "SwinAttention"]
    handles = [m.register_forward_hook(lambda *each: found.append(each[2][1])) for m in modules]
    pixels = subject.image_processor(images=picture, return_tensors="pt")["pixel_values"]
    with torch.no_grad():
        subject.model(pixels)
    for handle in handles:
        handle.remove()
    return [each.numpy() for each in found]


def undo_windows(weights, side, shift):
    """The map over a grid, each window put back in its place by hand."""
    heads, across = weights.shape[1], side // WINDOW
    whole = np.zeros((heads, side * side, side * side), dtype=np.float32)
    for window, each in enumerate(weights):
        top, left = window // across * WINDOW, window % across * WINDOW
        tokens = [
            (top + row + shift) % side * side + (left + column + shift) % side
            for row in range(WINDOW)
            for column in range(WINDOW)
        ]
        for row, query in enumerate(tokens):
            for column, key in enumerate(tokens):
                whole[:, query, key] = each[:, row, column]
    return whole


def swin_maps(subject, picture):
    """The maps of the three layers: whole windows, shifted ones, and those of the second stage."""
    first, shifted, second = window_weights(subject, picture)
    return [
        undo_windows(first, SIDE, 0),
        undo_windows(shifted, SIDE, WINDOW // 2),
        undo_windows(second, SIDE // 2, 0),
    ]


def merging():
    """How much of each patch is in each token of the second stage."""
    matrix = np.zeros((SIDE**2 // 4, SIDE**2))
    for patch in range(SIDE**2):
        row, column = divmod(patch, SIDE)
        matrix[row // 2 * (SIDE // 2) + column // 2, patch] = 1 / 4
    return matrix


def test_windows_are_put_back_in_their_places(subjects, picture):
    subject = subjects["Swin"]
    first, shifted, second = swin_maps(subject, picture)
    maps = subject.attention(picture)
    np.testing.assert_allclose(maps[0], first, atol=1e-6)
    np.testing.assert_allclose(maps[1], shifted, atol=1e-6)
    spread = np.einsum("qi,hqk,kj->hij", merging() * 4, second, merging())
    np.testing.assert_allclose(maps[2], spread, atol=1e-6)


def test_attention_and_its_rollout_are_followed_through_the_merging(subjects, picture):
    subject = subjects["Swin"]
    first, shifted, second = (each.mean(axis=0) for each in swin_maps(subject, picture))
    half = [each / 2 + np.eye(len(each)) / 2 for each in (first, shifted, second)]
    read = np.full(len(second), 1 / len(second))  # the head takes the mean of all tokens
    rolled = attlas.explain(subject, picture, "attention_rollout")
    readout = rolled_readout(subject, picture, read)
    expected = readout @ half[2] @ merging() @ half[1] @ half[0]
    np.testing.assert_allclose(rolled.scores, expected, atol=1e-6)
    raw = attlas.explain(subject, picture, "raw_attention")
    np.testing.assert_allclose(raw.scores, readout @ second @ merging(), atol=1e-6)
    assert raw.tokens.grids == {"image": (SIDE, SIDE)}


def rolled_readout(subject, picture, read):
    """The share of each last token, by the norm of the gradient of the winning logit on it."""
    held = []

    def hold(_module, _given, output):
        held.append(output[0].detach().requires_grad_())
        return (held[0], *output[1:])

    last = subject.model.swin.encoder.layers[-1].blocks[-1]
    handle = last.register_forward_hook(hold)
    pixels = subject.image_processor(images=picture, return_tensors="pt")["pixel_values"]
    logits = subject.model(pixels).logits
    handle.remove()
    norms = torch.autograd.grad(logits.max(), held[0])[0][0].norm(dim=-1).numpy()
    assert norms.shape == read.shape
    return norms / norms.sum()


def test_hiera_attends_within_squares_of_patches(subjects, picture):
    weights = subjects["Hiera"].attention(picture)[0][0]
    units = [patch // SIDE // 4 * 2 + patch % SIDE // 4 for patch in range(SIDE**2)]
    assert np.array_equal(weights > 0, np.equal.outer(units, units))


@pytest.mark.parametrize("family", SETTINGS)
def test_maps_and_vectors_score_each_patch_and_leave_the_model_as_it_was(subjects, picture, family):
    subject = subjects[family]
    model = subject.model
    pixels = subject.image_processor(images=picture, return_tensors="pt")["pixel_values"]
    before = model(pixels).logits
    for site, weights in subject.attention(picture):
        np.testing.assert_allclose(weights.sum(axis=-1), 1, atol=1e-5, err_msg=site.name)
    for method in ("attention_rollout", "gradient", "gradient_attention"):
        found = attlas.explain(subject, picture, method)
        patches = found.scores[~np.array(found.tokens.special)]
        assert patches.size == SIDE**2 and found.tokens.grids == {"image": (SIDE, SIDE)}
        assert np.ptp(patches) > 0
    assert model.config._attn_implementation == "eager"
    assert torch.equal(model(pixels).logits, before)


def test_a_value_of_zero_is_tried_block_by_block_within_each_stage(subjects, picture):
    subject = subjects["Hiera"]
    found = attlas.explain(subject, picture, "value_zeroing", layer=0)
    assert found.scores.sum() == pytest.approx(1, abs=1e-5)
    mixed, attended = found.maps[0][0] > 0, subject.attention(picture)[0][0] > 0
    assert np.array_equal(mixed, attended)
    assert np.ptp(attlas.explain(subject, picture, "value_zeroing").scores) > 0


@pytest.mark.parametrize("family", ["Swin", "Hiera", "Cvt"])
def test_the_effects_of_attention_add_up_on_the_patches(subjects, picture, family):
    found = attlas.explain(subjects[family], picture, "attattr", steps=60)
    for site, weights in found.maps:
        subject = subjects[family]
        whole, without = (probability(subject, picture, edits) for edits in ((), (site,)))
        assert weights.sum() == pytest.approx(whole - without, abs=1e-3), site.name


def probability(subject, picture, closed):
    """The largest probability, and the same class's without the attention of these sites."""
    pixels = subject.image_processor(images=picture, return_tensors="pt")["pixel_values"]
    best = int(subject.model(pixels).logits.argmax())
    edits = [attlas.edits.scale(0.0).at(kind=site.kind, layer=site.layer) for site in closed]
    with torch.no_grad(), subject.tap(edits):
        return float(subject.model(pixels).logits.softmax(dim=-1)[0, best])


def test_vectors_enter_where_the_first_block_gets_them(subjects, picture):
    subject = subjects["Segformer"]
    held = []

    def hold(_module, given):
        held.append(given[0].detach().requires_grad_())
        return (held[0], *given[1:])

    handle = subject.model.segformer.stages[0].blocks[0].register_forward_pre_hook(hold)
    pixels = subject.image_processor(images=picture, return_tensors="pt")["pixel_values"]
    logits = subject.model(pixels).logits
    handle.remove()
    (slope,) = torch.autograd.grad(logits.max(), held[0])
    found = attlas.explain(subject, picture, "input_x_gradient")
    expected = (held[0] * slope).sum(dim=-1)[0].detach().numpy()
    np.testing.assert_allclose(found.scores, expected, rtol=1e-3, atol=1e-6)


def test_flow_through_joined_tokens_is_refused(subjects, picture):
    with pytest.raises(UnsupportedModelError, match="SwinForImageClassification joins its tokens"):
        attlas.explain(subjects["Swin"], picture, "attention_flow")


def test_a_model_whose_patches_attend_past_each_other_is_refused_by_name(picture):
    config = transformers.MobileViTConfig(
        image_size=SIZE, hidden_sizes=[8, 8, 8], neck_hidden_sizes=[8, 8, 8, 8, 8, 8, 8]
    )
    model = transformers.MobileViTForImageClassification(config).eval()
    subject = attlas.Subject(model, ViTImageProcessorPil(size={"height": SIZE, "width": SIZE}))
    with pytest.raises(UnsupportedModelError, match="MobileViTForImageClassification: the atten"):
        attlas.explain(subject, picture, "gradient")
