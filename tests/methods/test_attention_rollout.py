"""Attention rollout against the sum over all paths through the layers, weighed step by step."""

import pytest
import torch
from paths import sum_over_paths, walk_down
from subjects import (
    ASKED,
    TEXTS,
    arguments,
    ask,
    attention_of,
    plain,
    random_attention,
    small,
    subject,
)
from tiny import BART_SHAPE, FUNNEL_SHAPE, LABELS, LLAMA_SHAPE, labels

import attlas
from attlas.errors import UnknownNameError, UnsupportedModelError, UsageError
from attlas.methods.attention_rollout import Rolling, attention_rollout, fold_copy
from attlas.models.encoding.request import Request

RESIDUALS = [0.0, 0.5, 0.9]


def with_sinks(layers, seed=9):
    """The same maps with rows that sum to less than one."""
    generator = torch.Generator().manual_seed(seed)
    return layers * (0.3 + 0.7 * torch.rand(*layers.shape[:-1], 1, generator=generator))


def in_batch(layers):
    return [layer[None] for layer in layers]


def roll_out(layers, residual):
    rolling = Rolling(residual)
    for layer in layers:
        rolling.add("encoder", layer)
    return rolling.mixing


def roll_out_to_source(encoder, decoder, cross, residual):
    rolling = Rolling(residual)
    for layer in encoder:
        rolling.add("encoder", layer)
    for own, other in zip(decoder, cross, strict=True):
        rolling.add("decoder", own)
        rolling.add("cross", other)
    return rolling.mixing


@pytest.mark.parametrize("residual", RESIDUALS)
@pytest.mark.parametrize("sinks", [False, True])
def test_equals_the_sum_over_paths(residual, sinks):
    layers = random_attention(3, 4, 4)
    layers = with_sinks(layers) if sinks else layers
    (rolled,) = roll_out(in_batch(layers), residual)
    torch.testing.assert_close(rolled, sum_over_paths(layers, residual))
    torch.testing.assert_close(rolled.sum(-1), torch.ones(4, dtype=torch.float64))


def test_layers_in_the_other_order_are_another_thing():
    layers = random_attention(3, 4, 4)
    (rolled,) = roll_out(in_batch(layers.flip(0)), 0.5)
    assert (rolled - sum_over_paths(layers, 0.5)).abs().max() > 0.01


@pytest.mark.parametrize("residual", RESIDUALS)
@pytest.mark.parametrize("sinks", [False, True])
def test_encoder_decoder_equals_the_sum_over_paths(residual, sinks):
    encoder, decoder = random_attention(2, 3, 3), random_attention(2, 4, 4, seed=1, causal=True)
    cross = random_attention(2, 4, 3, seed=2)
    if sinks:
        encoder, decoder, cross = with_sinks(encoder), with_sinks(decoder), with_sinks(cross)
    (mixing,) = roll_out_to_source(in_batch(encoder), in_batch(decoder), in_batch(cross), residual)
    source = sum_over_paths(encoder, residual)
    for position in range(4):
        found = {}
        walk_down(position, 1, source, decoder, cross, residual, found, 1.0)
        expected = [found.get(("source", i), 0.0) for i in range(3)]
        expected += [found.get(("prefix", i), 0.0) for i in range(4)]
        torch.testing.assert_close(mixing[position], torch.tensor(expected).double())
    torch.testing.assert_close(mixing.sum(-1), torch.ones(4, dtype=torch.float64))
    assert not mixing[:, 3:].triu(1).any(), "a decoder position knows nothing of later ones"


def test_two_tokens_by_hand():
    layers = torch.tensor([[[0.7, 0.3], [0.4, 0.6]], [[0.5, 0.5], [0.2, 0.8]]])
    (rolled,) = roll_out(in_batch(layers), 0.5)
    torch.testing.assert_close(rolled, torch.tensor([[0.6875, 0.3125], [0.2650, 0.7350]]))


@pytest.mark.parametrize("residual", [*RESIDUALS, 1.0])
def test_attention_to_oneself_alone_mixes_nothing(residual):
    layers = torch.eye(5).expand(4, 5, 5)
    assert torch.equal(roll_out(in_batch(layers), residual)[0], torch.eye(5))


@pytest.mark.parametrize("depth", [1, 2, 5])
def test_uniform_attention(depth):
    size = 6
    (rolled,) = roll_out(in_batch(torch.full((depth, size, size), 1 / size)), 0.5)
    diagonal = torch.full((size,), 0.5**depth + (1 - 0.5**depth) / size)
    torch.testing.assert_close(rolled.diagonal(), diagonal)


@pytest.mark.parametrize("residual", RESIDUALS)
def test_causal_stays_causal(residual):
    (rolled,) = roll_out(in_batch(random_attention(3, 6, 6, causal=True)), residual)
    assert not rolled.triu(1).any()


def test_a_row_without_weight_stays_without():
    layer = torch.tensor([[[0.0, 0.0], [0.5, 0.5]]])
    (rolled,) = roll_out([layer], 0.0)
    torch.testing.assert_close(rolled, layer[0])


@pytest.mark.parametrize("fusion", ["mean", "max", "min"])
def test_heads_are_joined_before_the_layers_are(fusion):
    name = "sequence classification"
    with torch.no_grad():
        output = plain(name)(**arguments(name, TEXTS[name][1]), output_attentions=True)
    join = {"mean": torch.mean, "max": torch.amax, "min": torch.amin}[fusion]
    heads = torch.stack([join(layer[0], dim=0) for layer in output.attentions]).double()
    found = attlas.explain(subject(name), TEXTS[name][1], "attention_rollout", fusion=fusion)
    expected = sum_over_paths(heads, 0.5)
    torch.testing.assert_close(
        torch.from_numpy(found.maps["all"][0]), expected.float(), atol=1e-6, rtol=1e-5
    )
    torch.testing.assert_close(
        torch.from_numpy(found.scores), expected[0].float(), atol=1e-6, rtol=1e-5
    )


@torch.no_grad()
def test_encoder_decoder_of_a_real_model():
    name, prefix = "sequence to sequence", ASKED["sequence to sequence"]["prefix"]
    given = arguments(name, TEXTS[name][1], prefix)
    output = attention_of(plain(name)(**given, output_attentions=True))
    maps = {kind: torch.cat(layers).mean(1) for kind, layers in output.items()}
    last = given["decoder_input_ids"].shape[1] - 1
    source, expected = sum_over_paths(maps["encoder"], 0.3), {}
    walk_down(last, 1, source, maps["decoder"], maps["cross"], 0.3, expected, 1.0)
    found = attlas.explain(
        subject(name), TEXTS[name][1], "attention_rollout", prefix=prefix, residual=0.3
    )
    count = found.segments.count("text")
    for position, score in enumerate(found.scores):
        place = ("source", position) if position < count else ("prefix", position - count)
        assert score == pytest.approx(float(expected.get(place, 0.0)), abs=1e-6)


def test_a_decoder_that_reads_a_copy_of_the_source():
    """BART's classifier hands its decoder the text, one place late, behind its start token."""
    settings = {**BART_SHAPE, **labels(*LABELS)}
    bart = small("Bart", "ForSequenceClassification", "word_level", **settings)
    found = attlas.explain(bart, "the cat sat", "attention_rollout")
    maps = bart.attention("the cat sat")
    layers = {
        kind: [torch.from_numpy(w.mean(0))[None] for s, w in maps if s.kind == kind]
        for kind in ("encoder", "decoder", "cross")
    }
    mixing = roll_out_to_source(layers["encoder"], layers["decoder"], layers["cross"], 0.5)[0]
    size = len(found.tokens)
    row = mixing[-1]  # read at the last </s>
    expected = [row[i] + row[size + (i + 1) % size] for i in range(size)]  # token i stands at i + 1
    torch.testing.assert_close(torch.from_numpy(found.scores), torch.stack(expected))
    torch.testing.assert_close(fold_copy(mixing[None])[0, -1], torch.stack(expected))
    assert found.scores.sum() == pytest.approx(1, abs=1e-5)


def test_attention_sinks_of_a_real_model():
    shape = {**LLAMA_SHAPE, "head_dim": 8, "num_local_experts": 4, "num_experts_per_tok": 2}
    gpt_oss = small("GptOss", "ForCausalLM", "bpe", **shape)
    found = attlas.explain(gpt_oss, "the cat sat", "attention_rollout")
    assert all(weights.sum(-1).min() < 0.9 for _, weights in gpt_oss.attention("the cat sat"))
    assert found.scores.sum() == pytest.approx(1, abs=1e-5)


@pytest.mark.parametrize("residual", [-0.1, 1.5, float("nan")])
def test_residual_must_be_a_share(residual):
    with pytest.raises(UsageError, match=rf"between 0 and 1, not {residual}"):
        attlas.explain(subject("causal lm"), "the cat", "attention_rollout", residual=residual)


def test_unknown_fusion():
    with pytest.raises(UnknownNameError, match=r"unknown head fusion 'median': .*mean, max, min"):
        attlas.explain(subject("causal lm"), "the cat", "attention_rollout", fusion="median")


def test_is_read_where_the_prediction_is():
    question = ask("causal lm")
    scored = attention_rollout(question)
    assert torch.equal(scored.scores[0], scored.maps[0][1][0, 0, -1])
    question = subject("token classification").ask(["a cat sat"], Request(position=2))[0]
    scored = attention_rollout(question)
    assert torch.equal(scored.scores[0], scored.maps[0][1][0, 0, 2])


def test_an_encoder_without_attention_hands_on_its_source_as_it_is():
    """One decoder layer over an unmixed source, worked by hand with half of everything kept."""
    own, cross = torch.tensor([[[1.0, 0.0], [0.4, 0.6]]]), torch.tensor([[[0.2, 0.8], [0.5, 0.5]]])
    rolling = Rolling(0.5, unmixed=2)
    rolling.add("decoder", own)
    rolling.add("cross", cross)
    expected = torch.tensor([[[0.1, 0.4, 0.5, 0.0], [0.25, 0.25, 0.1, 0.4]]])
    torch.testing.assert_close(rolling.mixing, expected)


@pytest.mark.parametrize("method", ["attention_rollout", "attention_flow"])
def test_layers_that_pool_their_positions_are_refused(method):
    funnel = small("Funnel", "ForSequenceClassification", **FUNNEL_SHAPE, **labels(*LABELS))
    with pytest.raises(
        UnsupportedModelError, match=r"attention .* cannot be (rolled out|connected)"
    ):
        attlas.explain(funnel, "the cat sat on", method, maps=False)
