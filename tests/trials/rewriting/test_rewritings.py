"""Rewritings of attention, against what a permutation is."""

import pytest
import torch
from subjects import random_attention

from attlas.errors import UnsupportedModelError
from attlas.trials.rewriting import rewritings as rewriting
from attlas.trials.rewriting.rewritings import Draws

HEADS, LENGTH, COUNT = 3, 6, 5
CPU = torch.device("cpu")


def draws(*seeds, numbers=range(COUNT)):
    return Draws(list(seeds), list(numbers), CPU)


def attention(batch=2, causal=False):
    return random_attention(batch, HEADS, LENGTH, LENGTH, causal=causal)[None]


def entries(batch=2, causal=False):
    """All rows but the first, all keys but the first and the last."""
    open_ = torch.zeros(batch, 1, LENGTH, LENGTH, dtype=torch.bool)
    open_[:, :, 1:, 1:-1] = True
    return open_ & torch.ones(LENGTH, LENGTH, dtype=torch.bool).tril() if causal else open_


SHUFFLES = [
    rewriting.shuffle_columns,
    rewriting.shuffle_columns_of_all_heads,
    rewriting.shuffle_keys,
]


@pytest.mark.parametrize("shuffle", SHUFFLES)
@pytest.mark.parametrize("causal", [False, True])
def test_weights_are_exchanged_within_their_rows_and_nothing_else_moves(shuffle, causal):
    weights, free = attention(causal=causal), entries(causal=causal)
    new = shuffle(weights, free, draws(1, 2))
    assert new.shape == (COUNT, *weights.shape[1:])
    held = ~free.expand(new.shape)
    assert torch.equal(new[held], weights.expand(new.shape)[held])
    assert torch.equal(new.sort(dim=-1).values, weights.expand(new.shape).sort(dim=-1).values)
    assert (new != weights).any()


def order_of(new, weights):
    """Where each key's weight came from; weights of a row must differ."""
    return (new[..., :, None] == weights[..., None, :]).int().argmax(dim=-1)


def test_every_row_and_head_has_an_order_of_its_own():
    weights = attention()
    order = order_of(rewriting.shuffle_columns(weights, entries(), draws(1, 2)), weights)
    assert (order[:, :, 0] != order[:, :, 1]).any()
    assert (order[..., 1, :] != order[..., 2, :]).any()
    assert (order[0] != order[1]).any()
    assert (order[:, 0] != order[:, 1]).any()


def test_heads_can_share_an_order():
    weights = attention()
    new = rewriting.shuffle_columns_of_all_heads(weights, entries(), draws(1, 2))
    order = order_of(new, weights)
    assert (order == order[:, :, :1]).all()
    assert (order[..., 1, :] != order[..., 2, :]).any()


def test_exchanged_keys_are_the_same_for_all_rows_and_heads():
    weights = attention()
    order = order_of(rewriting.shuffle_keys(weights, entries(), draws(1, 2)), weights)[..., 1:, :]
    assert (order == order[:, :, :1, :1]).all()
    assert (order[0] != order[1]).any()


def test_all_orders_are_equally_likely():
    weights = torch.tensor([0.5, 0.3, 0.2]).reshape(1, 1, 1, 1, 3)
    free = torch.ones(1, 1, 1, 3, dtype=torch.bool)
    new = rewriting.shuffle_columns(weights, free, draws(3, numbers=range(1200)))
    found = {}
    for row in new.reshape(-1, 3).tolist():
        found[tuple(row)] = found.get(tuple(row), 0) + 1
    assert len(found) == 6
    assert all(abs(count - 200) < 60 for count in found.values())  # more than four deviations


@pytest.mark.parametrize("shuffle", [*SHUFFLES, rewriting.shuffle_rows])
def test_what_a_text_gets_does_not_depend_on_other_texts_or_variants(shuffle):
    weights, free = attention(), entries()
    if shuffle in SHUFFLES[:2]:
        free[0, :, 2] = False  # the texts differ in the rows that count
    together = shuffle(weights, free, draws(1, 2))
    for text in (0, 1):
        alone = shuffle(weights[:, [text]], free[[text]], draws((1, 2)[text], numbers=[1, 4]))
        assert torch.equal(alone[:, 0], together[[1, 4], text])


def test_rows_take_the_shares_of_other_rows():
    weights, free = attention(), entries()
    new = rewriting.shuffle_rows(weights, free, draws(1, 2))
    held = ~free.expand(new.shape)
    assert torch.equal(new[held], weights.expand(new.shape)[held])
    torch.testing.assert_close(new.sum(-1), torch.ones_like(new.sum(-1)))
    shares = weights[..., 1:-1] / weights[..., 1:-1].sum(-1, keepdim=True)
    own = new[..., 1:-1] / new[..., 1:-1].sum(-1, keepdim=True)
    close = (own[..., 1:, None, :] - shares[..., None, :, :]).abs().amax(-1) < 1e-9
    assert (close.sum(-1) == 1).all()  # each row has the shares of exactly one
    taken = close.int().argmax(-1)
    assert all(len(set(row)) == len(row) for row in taken.reshape(-1, LENGTH - 1).tolist())
    assert (taken[:, :, 0] != taken[:, :, 1]).any()
    shared = rewriting.shuffle_rows_of_all_heads(weights, free, draws(1, 2))
    own = shared[..., 1:-1] / shared[..., 1:-1].sum(-1, keepdim=True)
    close = (own[..., 1:, None, :] - shares[..., None, :, :]).abs().amax(-1) < 1e-9
    taken = close.int().argmax(-1)
    assert (taken == taken[:, :, :1]).all()


def test_rows_that_see_different_keys_are_not_exchanged():
    with pytest.raises(UnsupportedModelError, match="same keys"):
        rewriting.shuffle_rows(attention(causal=True), entries(causal=True), draws(1, 2))


def test_weight_is_spread_evenly_over_what_may_change():
    weights = torch.tensor([0.5, 0.1, 0.3, 0.1]).reshape(1, 1, 1, 1, 4)
    free = torch.tensor([False, True, True, False]).reshape(1, 1, 1, 4)
    found = rewriting.spread_evenly(weights, free, draws(1))
    torch.testing.assert_close(found[0, 0, 0, 0], torch.tensor([0.5, 0.2, 0.2, 0.1]))
    closed = torch.zeros_like(free)
    assert torch.equal(rewriting.spread_evenly(weights, closed, draws(1)), weights)
