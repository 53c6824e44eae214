"""The LSTM that reads forward, and the one whose states keep off their mean, against torch's."""

import pytest
import torch
from torch import nn

from attlas.models.recurrent.configuration import RecurrentConfig
from attlas.models.recurrent.encoders import ForwardEncoder, apart_from, build_encoder


def test_it_is_the_lstm_of_torch_and_padding_does_not_count():
    torch.manual_seed(0)
    encoder = ForwardEncoder(3, 4, orthogonal=False)
    stock = nn.LSTM(3, 4, batch_first=True)
    for name in ("weight_ih", "weight_hh", "bias_ih", "bias_hh"):
        getattr(stock, f"{name}_l0").data.copy_(getattr(encoder.cell, name))
    vectors = torch.randn(2, 5, 3)
    states, last = encoder(vectors, torch.tensor([5, 3]))
    torch.testing.assert_close(states[0], stock(vectors[:1])[0][0])
    torch.testing.assert_close(states[1, :3], stock(vectors[1:, :3])[0][0])
    assert not states[1, 3:].any()
    torch.testing.assert_close(last, torch.stack([states[0, 4], states[1, 2]]))


def test_each_state_is_orthogonal_to_the_mean_of_those_before():
    torch.manual_seed(0)
    encoder = ForwardEncoder(3, 6, orthogonal=True)
    states, _ = encoder(torch.randn(2, 6, 3), torch.tensor([6, 4]))
    for text, length in ((0, 6), (1, 4)):
        for place in range(1, length):
            mean = states[text, :place].mean(dim=0)
            assert float((states[text, place] @ mean).detach()) == pytest.approx(0, abs=1e-6)
    state = torch.randn(2, 3)
    assert torch.equal(apart_from(state, torch.zeros(2, 3)), state)


def test_it_is_built_by_its_name():
    for name in ("lstm", "orthogonal_lstm"):
        encoder = build_encoder(RecurrentConfig(encoder=name), 3)
        assert encoder.orthogonal == (name != "lstm") and encoder.cell.hidden_size == 256
