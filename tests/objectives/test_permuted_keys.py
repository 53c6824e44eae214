"""Permuted keys: words exchange theirs among themselves, and the attention follows."""

import pytest
import torch
from learners import TEXTS, classifier, step_of

import attlas
from attlas.errors import UnsupportedModelError
from attlas.models.teaching.training_tap import opened_for_training
from attlas.objectives.permuted_keys import drawn_orders, permuted_keys


def test_an_order_is_one_of_words_among_words():
    content = torch.tensor([[False, True, True, True, False, True], [False, True, False] * 2])
    seen = set()
    for seed in range(200):
        order = drawn_orders(content, torch.Generator().manual_seed(seed))
        for row, marks in zip(order, content, strict=True):
            assert sorted(row.tolist()) == list(range(6))
            assert torch.equal(row[~marks], torch.arange(6)[~marks])
            assert set(row[marks].tolist()) == set(marks.nonzero().flatten().tolist())
        seen.add(tuple(order[0].tolist()))
    assert len(seen) == 24  # every order of four words comes up


def test_exchanged_keys_exchange_columns_of_the_first_layer():
    model = classifier().eval()
    step = step_of(model)
    order = drawn_orders(step.content, torch.Generator().manual_seed(1))

    def change(site, keys):
        other = keys.gather(2, order[:, None, :, None].expand(keys.shape))
        return keys if site.layer else other

    with opened_for_training(model, change) as tap:
        model(**step.arguments)
    columns = order[:, None, None, :].expand(tap.seen.calls[0].weights.shape)
    expected = step.calls[0].weights.gather(3, columns)
    torch.testing.assert_close(tap.seen.calls[0].weights, expected, atol=1e-5, rtol=1e-4)


def test_a_model_without_keys_is_refused():
    with pytest.raises(UnsupportedModelError, match="changes keys"):
        attlas.train("bilstm", TEXTS, epochs=1, vector_size=8, objectives="permuted_keys")


def test_another_layer_gives_another_loss():
    model = classifier().eval()
    found = []
    for layer in ("all", 0, 1):
        torch.manual_seed(0)
        found.append(permuted_keys(step_of(model), layer=layer))
    assert not torch.allclose(found[1], found[2]) and not torch.allclose(found[0], found[1])
