"""The rules of relevance against sums over paths, cases worked by hand and the published rules."""

from itertools import product

import numpy as np
import pytest
import torch

from attlas.methods.support.relevance_spread import (
    begin,
    normalise,
    read_others,
    read_own,
    weigh_heads,
)

T, I = "text", "image"  # noqa: E741


def layers(*shape, seed=0):
    """What attention × gradient may leave: nothing below zero, and rows of any sum."""
    generator = torch.Generator().manual_seed(seed)
    return torch.rand(*shape, generator=generator, dtype=torch.float64)


def start(**lengths):
    return begin(lengths, torch.zeros((), dtype=torch.float64))


def test_heads_by_hand():
    attention = torch.tensor([[[[0.5, 0.5]], [[0.2, 0.8]]]])
    gradient = torch.tensor([[[[2.0, -4.0]], [[-1.0, 0.5]]]])
    found = weigh_heads(attention, gradient)
    torch.testing.assert_close(found, torch.tensor([[[(1.0 + 0.0) / 2, (0.0 + 0.4) / 2]]]))


def test_the_attention_of_one_input_serves_several_targets():
    attention, gradient = layers(1, 2, 3, 3), layers(4, 2, 3, 3, seed=1) - 0.3
    found = weigh_heads(attention, gradient)
    for row in range(4):
        expected = weigh_heads(attention, gradient[row : row + 1])
        assert torch.equal(found[row : row + 1], expected)


def test_halves_are_averaged_as_floats():
    attention = torch.full((1, 3, 1, 1), 1 / 3, dtype=torch.bfloat16)
    found = weigh_heads(attention, attention)
    assert found.dtype == torch.float32
    assert float(found) == float((attention * attention)[0, 0, 0, 0])


def test_small_halves_are_multiplied_as_floats():
    tiny = torch.full((1, 1, 1, 1), 1e-4, dtype=torch.float16)
    assert float(tiny * tiny) == 0  # its square is below what such a number can hold
    assert float(weigh_heads(tiny, tiny)) == float(tiny) ** 2


def test_two_tokens_by_hand():
    first, second = (
        torch.tensor([[[0.1, 0.2], [0.0, 0.4]]]),
        torch.tensor([[[0.0, 0.5], [0.3, 0.0]]]),
    )
    found = begin({"only": 2}, first)
    for layer in (first, second):
        found = read_own(found, "only", layer)
    # (I + A2)(I + A1) = [[1, .5], [.3, 1]] @ [[1.1, .2], [0, 1.4]]
    expected = torch.tensor([[[1.1, 0.9], [0.33, 1.46]]])
    torch.testing.assert_close(found["only", "only"], expected)


def test_self_attention_is_the_sum_over_all_paths():
    """At each layer a path stays where it is or follows an attention; its weight is the product."""
    stack, size = layers(3, 3, 3), 3
    expected = torch.zeros(size, size, dtype=torch.float64)
    for stays in product([True, False], repeat=len(stack)):
        for path in product(range(size), repeat=len(stack) + 1):  # path[0] is the input token
            weight = 1.0
            for number, stay in enumerate(stays):
                below, above = path[number], path[number + 1]
                weight *= float(below == above) if stay else float(stack[number, above, below])
            expected[path[-1], path[0]] += weight
    found = start(only=size)
    for layer in stack:
        found = read_own(found, "only", layer[None])
    torch.testing.assert_close(found["only", "only"][0], expected)


def normalised(own):
    gained = own - np.eye(len(own))
    return gained / gained.sum(axis=1, keepdims=True) + np.eye(len(own))


def test_two_streams_by_the_published_rules():
    """Both streams by themselves, then twice: each reads the other, and then itself."""
    count, boxes = 3, 4
    own_t, own_i = layers(3, count, count), layers(3, boxes, boxes, seed=1)
    t_i, i_t = layers(2, count, boxes, seed=2), layers(2, boxes, count, seed=3)
    found = start(text=count, image=boxes)
    found = read_own(found, T, own_t[:1])
    found = read_own(found, I, own_i[:1])
    for block in range(2):
        reads = [(T, I, t_i[block : block + 1]), (I, T, i_t[block : block + 1])]
        found = read_others(found, reads)
        found = read_own(found, T, own_t[block + 1 : block + 2])
        found = read_own(found, I, own_i[block + 1 : block + 2])

    own_t, own_i, t_i, i_t = (each.numpy() for each in (own_t, own_i, t_i, i_t))
    tt = np.eye(count) + own_t[0] @ np.eye(count)
    ii = np.eye(boxes) + own_i[0] @ np.eye(boxes)
    ti, it = np.zeros((count, boxes)), np.zeros((boxes, count))
    for block in range(2):
        more_ti = normalised(tt).T @ t_i[block] @ normalised(ii)
        more_tt = t_i[block] @ it
        more_it = normalised(ii).T @ i_t[block] @ normalised(tt)
        more_ii = i_t[block] @ ti
        ti, tt, it, ii = ti + more_ti, tt + more_tt, it + more_it, ii + more_ii
        ti, tt = ti + own_t[block + 1] @ ti, tt + own_t[block + 1] @ tt
        it, ii = it + own_i[block + 1] @ it, ii + own_i[block + 1] @ ii
    for pair, expected in {(T, T): tt, (T, I): ti, (I, T): it, (I, I): ii}.items():
        np.testing.assert_allclose(found[pair][0], expected, rtol=1e-12)


def test_one_stream_that_is_only_read_gains_nothing():
    """An encoder–decoder: the rule of DETR, in which R_qq has no term of the cross-attention."""
    source, own, cross = layers(1, 3, 3), layers(1, 2, 2, seed=1), layers(1, 2, 3, seed=2)
    found = read_own(start(source=3, prefix=2), "source", source)
    found = read_own(found, "prefix", own)
    before = found["prefix", "prefix"], found["source", "source"]
    found = read_others(found, [("prefix", "source", cross)])
    assert torch.equal(found["prefix", "prefix"], before[0])
    assert torch.equal(found["source", "source"], before[1])
    assert ("source", "prefix") not in found
    expected = (
        normalised(before[0][0].numpy()).T @ cross[0].numpy() @ normalised(before[1][0].numpy())
    )
    np.testing.assert_allclose(found["prefix", "source"][0], expected, rtol=1e-12)


def test_reading_one_after_the_other_is_another_thing():
    t_i, i_t = layers(1, 3, 4, seed=2), layers(1, 4, 3, seed=3)
    before = read_own(start(text=3, image=4), T, layers(1, 3, 3))
    at_once = read_others(before, [(T, I, t_i), (I, T, i_t)])
    in_turn = read_others(read_others(before, [(T, I, t_i)]), [(I, T, i_t)])
    assert torch.equal(at_once[I, I], before[I, I])
    assert not torch.allclose(in_turn[I, I], before[I, I])


@pytest.mark.parametrize("size", [1, 3])
def test_rows_that_gained_nothing_stay_as_they_began(size):
    assert torch.equal(normalise(torch.eye(size)[None]), torch.eye(size)[None])


def test_normalise_by_hand():
    own = torch.tensor([[[1.5, 0.5], [0.0, 1.0]]])
    expected = torch.tensor([[[1.5, 0.5], [0.0, 1.0]]])
    torch.testing.assert_close(normalise(own), expected)
    own = torch.tensor([[[1.1, 0.3], [0.2, 1.0]]])
    expected = torch.tensor([[[1.25, 0.75], [1.0, 1.0]]])
    torch.testing.assert_close(normalise(own), expected)


def test_what_was_there_is_left_as_it_was():
    first = start(text=2, image=3)
    read_own(first, T, layers(1, 2, 2))
    read_others(first, [(T, I, layers(1, 2, 3))])
    assert set(first) == {(T, T), (I, I)}
    assert torch.equal(first[T, T], torch.eye(2, dtype=torch.float64)[None])
