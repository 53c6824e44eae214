"""The identifiable layer: in the place of torch's, its heads added, its weights determined."""

import pytest
import torch
from torch import nn

from attlas import IdentifiableEncoderLayer
from attlas.errors import UsageError
from attlas.mathematics.null_space import ranks, rounding

WIDTH, HEADS = 8, 2


def layer(**given):
    torch.manual_seed(0)
    return IdentifiableEncoderLayer(WIDTH, HEADS, 16, **given).eval()


def test_heads_are_added_not_joined():
    attention = layer().self_attn
    states = torch.randn(3, 5, WIDTH)
    total = torch.zeros(3, 5, WIDTH)
    for head in range(HEADS):
        keys = slice(4 * head, 4 * head + 4)
        query = states @ attention.query.weight[keys].T + attention.query.bias[keys]
        key = states @ attention.key.weight[keys].T + attention.key.bias[keys]
        wide = slice(WIDTH * head, WIDTH * head + WIDTH)
        value = states @ attention.value.weight[wide].T + attention.value.bias[wide]
        total += (query @ key.transpose(1, 2) / 2).softmax(-1) @ value
    torch.testing.assert_close(attention(states), total)


@pytest.mark.parametrize("norm_first", [False, True])
@pytest.mark.parametrize("batch_first", [False, True])
def test_it_stands_in_the_stock_encoder(norm_first, batch_first):
    made = layer(norm_first=norm_first, batch_first=batch_first)
    encoder = nn.TransformerEncoder(made, 2, enable_nested_tensor=False).eval()
    states = torch.randn(5, 3, WIDTH)
    padding = torch.zeros(5 if batch_first else 3, 3 if batch_first else 5, dtype=torch.bool)
    padding[0, -1] = True
    found = encoder(states, src_key_padding_mask=padding)
    assert found.shape == states.shape
    other = states.clone()
    place = (0, -1) if batch_first else (-1, 0)
    other[place] = 9.0  # what fills a text up is not seen by the others
    again = encoder(other, src_key_padding_mask=padding)
    seen = torch.ones(states.shape[:2], dtype=torch.bool)
    seen[place] = False
    torch.testing.assert_close(found[seen], again[seen])


def test_a_causal_mask_is_kept():
    made = layer(batch_first=True)
    states = torch.randn(1, 4, WIDTH)
    later = states.clone()
    later[0, -1] = 5.0
    mask = nn.Transformer.generate_square_subsequent_mask(4)
    one, other = (made(each, src_mask=mask)[0, :3] for each in (states, later))
    torch.testing.assert_close(one, other)
    torch.testing.assert_close(made(states, is_causal=True), made(states, src_mask=mask))


def test_its_weights_are_determined_up_to_the_width_of_the_model():
    attention = layer().self_attn
    for length, free in ((WIDTH, 0), (WIDTH + 3, 3)):
        states = torch.randn(1, length, WIDTH)
        values = attention.value(states).unflatten(-1, (HEADS, -1)).transpose(1, 2)
        seen = torch.ones(1, HEADS, 1, length, dtype=torch.bool)
        assert (length - ranks(values, seen, rounding(values))).flatten().tolist() == [free] * HEADS


def beside_stock(**given):
    """A layer of one head, whose values are as wide as the model's own, and torch's alike."""
    torch.manual_seed(0)
    made, stock = (
        kind(WIDTH, 1, 16, **given).eval()
        for kind in (IdentifiableEncoderLayer, nn.TransformerEncoderLayer)
    )
    parts = [made.self_attn.query, made.self_attn.key, made.self_attn.value]
    with torch.no_grad():
        for name in ("linear1", "linear2", "norm1", "norm2"):
            getattr(stock, name).load_state_dict(getattr(made, name).state_dict())
        stock.self_attn.in_proj_weight.copy_(torch.cat([part.weight for part in parts]))
        stock.self_attn.out_proj.weight.copy_(torch.eye(WIDTH))
        if stock.self_attn.in_proj_bias is not None:
            stock.self_attn.in_proj_bias.copy_(torch.cat([part.bias for part in parts]))
            stock.self_attn.out_proj.bias.zero_()
    return made, stock


@pytest.mark.parametrize(
    "given",
    [
        {"activation": "gelu"},
        {"activation": torch.tanh, "norm_first": True},
        {"bias": False, "layer_norm_eps": 1e-2},
        {"device": "cpu", "dtype": torch.float64},
    ],
    ids=["by name", "a function", "without biases", "on a device"],
)
@pytest.mark.parametrize("batch_first", [False, True])
def test_the_arguments_of_torch_mean_what_they_mean_there(given, batch_first):
    made, stock = beside_stock(**given, batch_first=batch_first)
    states = torch.randn(3, 5, WIDTH, dtype=given.get("dtype"))
    for asked in (states, states[0]):
        torch.testing.assert_close(made(asked), stock(asked))


CAUSAL = nn.Transformer.generate_square_subsequent_mask(5)
PADDING = torch.arange(5).expand(3, 5) >= torch.tensor([[5], [3], [4]])


@pytest.mark.parametrize(
    "masks",
    [
        {"src_mask": CAUSAL},
        {"src_mask": CAUSAL < 0, "src_key_padding_mask": PADDING},
        {"src_mask": CAUSAL, "src_key_padding_mask": PADDING.float() * -9, "is_causal": True},
        {"src_mask": -torch.arange(25.0).reshape(5, 5) / 7},
        {"src_mask": torch.stack([CAUSAL < 0, CAUSAL.T < 0, CAUSAL < 0])},
    ],
    ids=["causal", "bool", "float padding", "added", "one a text"],
)
def test_masks_mean_what_they_mean_to_torch(masks):
    made, stock = beside_stock(batch_first=True)
    states = torch.randn(3, 5, WIDTH)
    torch.testing.assert_close(made(states, **masks), stock(states, **masks))


def test_a_mask_for_each_head():
    made = layer(batch_first=True)
    states, open_, shut = torch.randn(2, 4, WIDTH), torch.zeros(4, 4), torch.full((4, 4), -1e9)
    shut[:, 0] = 0
    mixed = made.self_attn(states, torch.stack([open_, shut, open_, open_]).view(2, 2, 4, 4))
    plain = made.self_attn(states)
    assert not torch.allclose(mixed[0], plain[0])
    torch.testing.assert_close(mixed[1], plain[1])
    given = torch.stack([open_, shut, open_, open_])
    torch.testing.assert_close(made(states, given)[1], made(states)[1])


def test_a_text_of_padding_alone_is_finite():
    padding = torch.ones(1, 4, dtype=torch.bool)
    found = layer(batch_first=True)(torch.randn(1, 4, WIDTH), src_key_padding_mask=padding)
    assert torch.isfinite(found).all()


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"nhead": 0}, "1 or more"),
        ({"nhead": 2, "key_width": 0}, "1 or more"),
        ({"nhead": 2, "activation": "gleu"}, "did you mean 'gelu'"),
    ],
)
def test_mistakes_are_told(given, told):
    with pytest.raises(UsageError, match=told):
        IdentifiableEncoderLayer(WIDTH, **given)
    with pytest.raises(UsageError, match="bool or floating"):
        layer()(torch.randn(4, 1, WIDTH), src_mask=torch.ones(4, 4, dtype=torch.int64))


def test_a_width_that_heads_do_not_divide_needs_key_width():
    with pytest.raises(UsageError, match="give key_width"):
        IdentifiableEncoderLayer(10, 4)
    assert IdentifiableEncoderLayer(10, 4, key_width=3)(torch.randn(2, 1, 10)).shape == (2, 1, 10)
