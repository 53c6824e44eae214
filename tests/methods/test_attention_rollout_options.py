"""Attention rollout of a part of the attention: without the smallest weights, or of one head."""

import numpy as np
import pytest
import torch
from paths import sum_over_paths, walk_down
from subjects import ASKED, TEXTS, arguments, attention_of, plain, random_attention, subject

import attlas
from attlas.errors import UsageError
from attlas.methods.attention_rollout import drop_smallest


def test_the_smallest_weights_are_dropped_by_hand():
    layers = torch.tensor(
        [
            [[0.6, 0.3, 0.1], [0.25, 0.7, 0.05], [0.35, 0.45, 0.2]],
            [[0.34, 0.33, 0.33], [0.0, 0.9, 0.1], [0.0, 0.0, 1.0]],
        ]
    )
    expected = torch.tensor(
        [
            [[0.6, 0.3, 0.0], [0.25, 0.7, 0.0], [0.35, 0.45, 0.0]],  # three of nine
            [[0.34, 0.33, 0.33], [0.0, 0.9, 0.0], [0.0, 0.0, 1.0]],  # two of six, but two tie
        ]
    )
    assert torch.equal(drop_smallest(layers, 0.4), expected)
    expected[0, 1, 0] = expected[1, 0, 1] = expected[1, 0, 2] = 0  # four of nine, three of six
    assert torch.equal(drop_smallest(layers, 0.5), expected)
    assert torch.equal(drop_smallest(layers, 0.0), layers)


def test_the_largest_of_each_row_is_never_dropped():
    layers = torch.tensor([[[0.5, 0.2], [0.9, 0.1]], [[0.4, 0.4], [0.0, 0.0]]])
    expected = torch.tensor([[[0.5, 0.0], [0.9, 0.0]], [[0.4, 0.4], [0.0, 0.0]]])
    assert torch.equal(drop_smallest(layers, 1.0), expected)


@pytest.mark.parametrize("share", [0.3, 0.9])
def test_dropping_in_a_causal_map_counts_what_can_be_seen(share):
    layer = random_attention(1, 8, 8, causal=True)
    left = drop_smallest(layer, share)
    seen = layer[0][layer[0] > 0].sort().values
    edge = seen[int(share * len(seen))]
    for row, kept in zip(layer[0], left[0], strict=True):
        for weight, now in zip(row.tolist(), kept.tolist(), strict=True):
            assert now == (weight if weight >= edge or weight == row.max() else 0)


@torch.no_grad()
def test_weights_are_dropped_in_every_layer_and_rows_made_whole():
    name = "sequence classification"
    output = plain(name)(**arguments(name, TEXTS[name][1]), output_attentions=True)
    heads = torch.cat(output.attentions).mean(1)
    for layer in heads:
        edge = layer.flatten().sort().values[int(0.6 * layer.numel())]
        layer[(layer < edge) & (layer < layer.amax(-1, keepdim=True))] = 0
    found = attlas.explain(subject(name), TEXTS[name][1], "attention_rollout", discard=0.6)
    expected = sum_over_paths(heads.double(), 0.5)
    np.testing.assert_allclose(found.maps["all"][0], expected, atol=1e-6)
    np.testing.assert_allclose(found.maps["all"][0].sum(-1), 1, atol=1e-6)


@pytest.mark.parametrize("head", [0, 3])
@torch.no_grad()
def test_one_head_of_the_last_layer_on_all_heads_of_those_below(head):
    name = "causal lm"
    output = plain(name)(**arguments(name, TEXTS[name][1]), output_attentions=True)
    *below, last = (layer[0].double() for layer in output.attentions)
    layers = torch.stack([*(layer.mean(0) for layer in below), last[head]])
    found = attlas.explain(subject(name), TEXTS[name][1], "attention_rollout", head=head)
    np.testing.assert_allclose(found.scores, sum_over_paths(layers, 0.5)[-1], atol=1e-6)


@torch.no_grad()
def test_one_head_of_the_last_cross_attention():
    name, prefix = "sequence to sequence", ASKED["sequence to sequence"]["prefix"]
    given = arguments(name, TEXTS[name][1], prefix)
    output = attention_of(plain(name)(**given, output_attentions=True))
    maps = {kind: torch.cat(layers).mean(1) for kind, layers in output.items()}
    maps["cross"][-1] = output["cross"][-1][0, 2]
    source, expected = sum_over_paths(maps["encoder"], 0.5), {}
    last = given["decoder_input_ids"].shape[1] - 1
    walk_down(last, 1, source, maps["decoder"], maps["cross"], 0.5, expected, 1.0)
    found = attlas.explain(
        subject(name), TEXTS[name][1], "attention_rollout", head=2, **ASKED[name]
    )
    for position in range(found.segments.count("text")):
        assert found.scores[position] == pytest.approx(
            float(expected["source", position]), abs=1e-6
        )


@pytest.mark.parametrize(
    ("option", "message"),
    [
        ({"discard": 1.2}, "discard is a share, between 0 and 1, not 1.2"),
        ({"head": 4}, "unknown head 4: the last layer has heads 0 to 3"),
        ({"head": -1}, "unknown head -1: the last layer has heads 0 to 3"),
    ],
)
def test_options_out_of_range(option, message):
    with pytest.raises(UsageError, match=message):
        attlas.explain(subject("causal lm"), "the cat", "attention_rollout", **option)
