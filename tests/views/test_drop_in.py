"""BertViz's views by BertViz's arguments: what they hold, and what is told of mistakes."""

import json

import numpy as np
import pytest
import torch

from attlas.errors import UsageError
from attlas.views import head_view, map_codes, model_view
from attlas.views.map_codes import read_site

TOKENS = ["[CLS]", "Ġgood", "##s", "▁day", "[SEP]"]


def attention(layers=2, heads=3, queries=5, keys=5):
    drawn = torch.Generator().manual_seed(0)
    return tuple(
        torch.randn(1, heads, queries, keys, generator=drawn).softmax(-1) for _ in range(layers)
    )


def test_attention_as_transformers_returns_it():
    given = attention()
    shown = head_view(given, TOKENS, layer=1, heads=[2, 0])
    assert [row["label"] for row in shown.payload["tokens"]] == [
        "[CLS]",
        "good",
        "s",
        "day",
        "[SEP]",
    ]
    assert [row["special"] for row in shown.payload["tokens"]] == [True, *[False] * 3, True]
    sites = shown.payload["maps"]["sites"]
    assert [site["name"] for site in sites] == ["layer.0", "layer.1"]
    for site, weights in zip(sites, given, strict=True):
        assert np.abs(read_site(site) - weights[0].numpy()).max() < 0.005
    assert shown.payload["opens"] == {"view": "lines", "layer": 1, "head": 2, "heads": "2,0"}


def test_tokens_as_they_are():
    shown = head_view(attention(), TOKENS, prettify_tokens=False)
    assert [row["label"] for row in shown.payload["tokens"]] == TOKENS


def test_layers_and_heads_that_are_left_out_keep_their_numbers():
    given = attention(4, 3)
    shown = model_view(given, TOKENS, include_layers=[1, 3], include_heads=[2])
    sites = shown.payload["maps"]["sites"]
    assert [(site["name"], site["numbers"]) for site in sites] == [
        ("layer.1", [2]),
        ("layer.3", [2]),
    ]
    assert np.abs(read_site(sites[1])[0] - given[3][0, 2].numpy()).max() < 0.005
    assert shown.payload["opens"] == {"view": "model", "scheme": "dark"}


def test_an_encoder_and_a_decoder():
    shown = model_view(
        encoder_attention=attention(1, 2, 4, 4),
        decoder_attention=attention(1, 2, 3, 3),
        cross_attention=attention(1, 2, 3, 4),
        encoder_tokens=list("abcd"),
        decoder_tokens=list("xyz"),
    )
    sites = {site["name"]: site for site in shown.payload["maps"]["sites"]}
    assert sites["cross.0"]["queries"] == [4, 5, 6]
    assert sites["cross.0"]["keys"] == [0, 1, 2, 3]
    assert [row["segment"] for row in shown.payload["tokens"]] == ["encoder"] * 4 + ["decoder"] * 3


def test_sentence_b():
    shown = head_view(attention(), TOKENS, sentence_b_start=2)
    assert [row["segment"] for row in shown.payload["tokens"]] == ["sentence A"] * 2 + [
        "sentence B"
    ] * 3


def test_half_precision_and_arrays():
    given = [each.to(torch.bfloat16) for each in attention(1)]
    assert len(head_view(given, TOKENS).payload["maps"]["sites"]) == 1
    plain = [each[0].numpy() for each in attention(1)]
    assert len(head_view(plain, TOKENS).payload["maps"]["sites"]) == 1


def test_it_is_a_page_and_shows_itself(tmp_path):
    shown = head_view(attention(1, 1), ["</script>", '"', "a", "b", "c"], html_action="return")
    path = shown.to_html(tmp_path / "view.html")
    assert path.read_text() == shown.data
    frame = shown._repr_html_()
    assert frame.startswith("<iframe srcdoc=") and frame.count('"') == 6
    assert "</script>" not in frame
    json.dumps(shown.payload, allow_nan=False)
    assert repr(shown) == "Shown(1 sites, 5 tokens)"


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({}, "give attention, or one or more of encoder_attention, decoder_attention, cross_"),
        ({"attention": attention()}, "attention needs tokens, one for each query"),
        (
            {"attention": attention(), "tokens": ["a"]},
            r"the attention of layer.0 has shape \(1, 3, 5, 5\), not \(1, heads, 1, 1\)",
        ),
        ({"attention": [torch.zeros(2, 1, 5, 5)], "tokens": TOKENS}, r"has shape \(2, 1, 5, 5\)"),
        ({"attention": [torch.zeros(5, 5)], "tokens": TOKENS}, r"has shape \(5, 5\)"),
        ({"attention": [np.zeros((1, 1, 5, 5), int)], "tokens": TOKENS}, "holds int64, not float"),
        (
            {"attention": [np.full((1, 1, 5, 5), np.nan)], "tokens": TOKENS},
            "values that are not fin",
        ),
        (
            {"attention": attention(), "tokens": TOKENS, "encoder_tokens": TOKENS},
            "attention is of one stream: do not give encoder_tokens beside it",
        ),
        ({"cross_attention": attention(), "encoder_tokens": TOKENS}, "needs decoder_tokens"),
        ({"attention": attention(), "tokens": TOKENS, "include_layers": [2]}, "from 0 to 1, not"),
        ({"attention": attention(), "tokens": TOKENS, "sentence_b_start": 5}, "is from 1 to 4"),
        ({"attention": attention(), "tokens": TOKENS, "html_action": "print"}, "view, return"),
    ],
)
def test_mistakes_are_told_in_one_line(given, said):
    for view in (head_view, model_view):
        with pytest.raises(UsageError, match=said) as told:
            view(**given)
        assert "\n" not in str(told.value)


def test_mistakes_of_one_view():
    with pytest.raises(UsageError, match="layer 7 is not among the layers"):
        head_view(attention(), TOKENS, layer=7)
    with pytest.raises(UsageError, match="heads holds numbers from 0 to 2"):
        head_view(attention(), TOKENS, heads=[3])
    with pytest.raises(UsageError, match="unknown display_mode 'blue'"):
        model_view(attention(), TOKENS, display_mode="blue")
    with pytest.raises(
        UsageError, match=r"importance has \[1\] finite numbers a layer, not \[3, 3\]"
    ):
        model_view(attention(), TOKENS, importance=[[1.0]])


def test_sites_made_side_by_side_are_those_made_in_turn(monkeypatch):
    drawn = np.random.default_rng(0).random((3, 2, 4, 4))
    axes = (list(range(4)), list(range(4)))
    given = [(f"encoder.{i}", ("encoder", i), axes, each) for i, each in enumerate(drawn)]
    in_turn = map_codes.site_sections(given)
    monkeypatch.setattr(map_codes, "MANY", 0)
    monkeypatch.setattr(map_codes.os, "cpu_count", lambda: 3)
    assert map_codes.site_sections(given) == in_turn
    assert [each["name"] for each in in_turn] == ["encoder.0", "encoder.1", "encoder.2"]


@pytest.mark.parametrize("repeated", [1, 8])
def test_codes_come_back_with_and_without_runs(repeated):
    row = np.random.default_rng(0).permutation(256)[: 128 // repeated]
    codes = np.tile(np.repeat(row, repeated), (2, 128, 1)).astype(np.float32)
    weights = (codes / 255) ** 2
    site = map_codes.site_section("all", ("all", 0), (range(128), range(128)), weights)
    limits = weights.max()
    np.testing.assert_allclose(read_site(site), weights, atol=limits / 255)
    assert len(site["data"]) < weights.size * (0.9 if repeated == 8 else 1.4)
