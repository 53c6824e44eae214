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


def test_a_width_that_heads_do_not_divide_needs_key_width():
    with pytest.raises(UsageError, match="give key_width"):
        IdentifiableEncoderLayer(10, 4)
    assert IdentifiableEncoderLayer(10, 4, key_width=3)(torch.randn(2, 1, 10)).shape == (2, 1, 10)
