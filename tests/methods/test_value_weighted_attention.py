"""Value-weighted attention against the vectors themselves, worked out from a plain model's weights.

BERT: f is (x W_V + b_V) W_O, every part a vector of its own, norms taken at the end.
"""

from copy import deepcopy
from dataclasses import replace

import numpy as np
import pytest
import torch
from subjects import ASKED, TEXTS, arguments, ask, plain, small, subject
from tiny import LLAMA_SHAPE, XLNET_SHAPE

import attlas
from attlas.errors import NotDefinedError, UnsupportedModelError
from attlas.methods.value_weighted_attention import norms_of_sums, value_weighted_attention

TASK = "sequence classification"
TEXT = TEXTS[TASK][0]
HEADS, WIDTH = 4, 8


@torch.no_grad()
def layer_parts(layer):
    """Of a BERT layer: what each key adds to each query, head by head, its input, and the sum."""
    model = plain(TASK)
    given = arguments(TASK, TEXT)
    output = model(**given, output_attentions=True, output_hidden_states=True)
    block = model.bert.encoder.layer[layer].attention
    stream = output.hidden_states[layer % 2][0]
    values = block.self.value(stream).unflatten(-1, (HEADS, WIDTH))
    slices = block.output.dense.weight.unflatten(1, (HEADS, WIDTH))
    parts = torch.einsum("hqk,khw,fhw->hqkf", output.attentions[layer][0], values, slices)
    return parts, stream, block.output


def with_stream(parts, stream):
    total = parts.sum(0)
    index = torch.arange(len(stream))
    total[index, index] += stream
    return total


def through_norm(vectors, parts, stream, output):
    """g with the statistics of the whole: (v - mean) / sqrt(var + eps) * gamma."""
    whole = parts.sum((0, 2)) + output.dense.bias + stream
    spread = (whole.var(dim=-1, correction=0) + output.LayerNorm.eps).sqrt()
    moved = vectors - vectors.mean(dim=-1, keepdim=True)
    return moved * output.LayerNorm.weight / spread[:, None, None]


def explain(**options):
    return attlas.explain(subject(TASK), TEXT, "value_weighted_attention", **options)


def expected_vectors(layer, residual, layer_norm):
    parts, stream, output = layer_parts(layer)
    vectors = with_stream(parts, stream) if residual else parts.sum(0)
    return through_norm(vectors, parts, stream, output) if layer_norm else vectors


@pytest.mark.parametrize("layer_norm", [False, True])
@pytest.mark.parametrize("residual", [False, True])
@pytest.mark.parametrize("layer", [0, -1])
@torch.no_grad()
def test_is_the_norm_of_the_parts(layer, residual, layer_norm):
    vectors = expected_vectors(layer, residual, layer_norm)
    found = explain(layer=layer, residual=residual, layer_norm=layer_norm)
    np.testing.assert_allclose(found.scores, vectors[0].norm(dim=-1), rtol=1e-4, atol=1e-5)
    own = vectors.diagonal(dim1=0, dim2=1).T.norm(dim=-1)
    others = (vectors.sum(1) - vectors.diagonal(dim1=0, dim2=1).T).norm(dim=-1)
    ratio = float((others / (others + own)).mean())
    assert found.notes[0] == f"encoder.{layer % 2}: mixing ratio {ratio:.2f}"


@torch.no_grad()
def test_the_mean_over_layers():
    both = sum(expected_vectors(layer, False, False)[0].norm(dim=-1) for layer in (0, 1)) / 2
    np.testing.assert_allclose(explain(layer=None).scores, both, rtol=1e-4, atol=1e-5)


@torch.no_grad()
def test_maps_are_of_each_head():
    maps = explain().maps
    normed = explain(layer_norm=True).maps
    for layer in (0, 1):
        parts, stream, output = layer_parts(layer)
        np.testing.assert_allclose(maps.weights[layer], parts.norm(dim=-1), rtol=1e-4, atol=1e-5)
        through = torch.stack([through_norm(head, parts, stream, output) for head in parts])
        found = normed.weights[layer]
        np.testing.assert_allclose(found, through.norm(dim=-1), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("residual", [False, True])
@torch.no_grad()
def test_rolled_out(residual):
    mixing = torch.eye(len(subject(TASK).tokenizer(TEXT)["input_ids"]))
    for layer in (0, 1):
        norms = expected_vectors(layer, residual, False).norm(dim=-1)
        shares = norms / norms.sum(dim=-1, keepdim=True)
        bypass = 0.0 if residual else 0.5
        mixing = ((1 - bypass) * shares + bypass * torch.eye(len(shares))) @ mixing
    found = explain(residual=residual, rolled_out=True)
    np.testing.assert_allclose(found.scores, mixing[0], rtol=1e-4, atol=1e-5)
    assert len(found.notes) == 2


def test_weights_and_values_that_cancel():
    """Two heads that bring the same token with opposite values add nothing together."""
    weights = torch.full((1, 2, 1, 1), 0.5)
    vectors = torch.tensor([[[[3.0, 4.0]], [[-3.0, -4.0]]]])
    assert norms_of_sums(weights, vectors).item() == pytest.approx(0, abs=1e-7)
    assert norms_of_sums(weights, vectors.abs()).item() == pytest.approx(5)


def test_grouped_heads():
    llama = small("Llama", "ForCausalLM", "bpe", **LLAMA_SHAPE)
    found = attlas.explain(llama, TEXT, "value_weighted_attention", residual=True)
    model = llama.model
    ids = torch.tensor([llama.tokenizer(TEXT)["input_ids"]])
    model.set_attn_implementation("eager")
    with torch.no_grad():
        output = model(ids, output_attentions=True, output_hidden_states=True)
        layer = model.model.layers[1]
        stream = output.hidden_states[1][0]
        values = layer.self_attn.v_proj(layer.input_layernorm(stream)).unflatten(-1, (2, WIDTH))
        slices = layer.self_attn.o_proj.weight.unflatten(1, (HEADS, WIDTH))
        shared = values.repeat_interleave(2, dim=1)
        row = torch.einsum("hk,khw,fhw->kf", output.attentions[1][0, :, -1], shared, slices)
        row[-1] += stream[-1]
    np.testing.assert_allclose(found.scores, row.norm(dim=-1), rtol=1e-4, atol=1e-5)


GATED_SHAPE = {**LLAMA_SHAPE, "head_dim": WIDTH, "layer_types": ["full_attention"] * 2}


def gated_parts(qwen):
    """Of the last layer of a Qwen3-Next: what each key adds to each query, `[head, query, key]`."""
    layer, ids = qwen.model.model.layers[1], torch.tensor([qwen.tokenizer(TEXT)["input_ids"]])
    block = layer.self_attn
    qwen.model.set_attn_implementation("eager")
    output = qwen.model(ids, output_attentions=True, output_hidden_states=True)
    given = layer.input_layernorm(output.hidden_states[1][0])
    gate = block.q_proj(given).unflatten(-1, (HEADS, 2 * WIDTH))[..., WIDTH:].sigmoid()
    values = block.v_proj(given).unflatten(-1, (2, WIDTH)).repeat_interleave(2, dim=1)
    slices = block.o_proj.weight.unflatten(1, (HEADS, WIDTH))
    return torch.einsum("hqk,qhw,khw,fhw->hqkf", output.attentions[1][0], gate, values, slices)


@pytest.mark.parametrize("most", [1, 2**24])
@torch.no_grad()
def test_a_gate_is_held_as_it_is(monkeypatch, most):
    """With few numbers at once, each query is alone."""
    monkeypatch.setitem(value_weighted_attention.__globals__, "NUMBERS_AT_ONCE", most)
    qwen = small("Qwen3Next", "ForCausalLM", "bpe", **GATED_SHAPE, mlp_only_layers=[0, 1])
    found = attlas.explain(qwen, TEXT, "value_weighted_attention")
    parts = gated_parts(qwen)
    total = parts.sum(dim=0)
    np.testing.assert_allclose(found.scores, total[-1].norm(dim=-1), rtol=1e-4, atol=1e-5)
    heads = parts.norm(dim=-1)
    np.testing.assert_allclose(found.maps.weights[-1], heads, rtol=1e-4, atol=1e-5)
    own = total.diagonal(dim1=0, dim2=1).T
    others = (total.sum(dim=1) - own).norm(dim=-1)
    ratio = float((others / (others + own.norm(dim=-1))).mean())
    assert found.notes[0] == f"decoder.1: mixing ratio {ratio:.2f}"


def test_a_factor_that_comes_from_the_mixed_values_is_no_gate():
    llama = small("Llama", "ForCausalLM", "bpe", **LLAMA_SHAPE)
    projection = llama.model.model.layers[1].self_attn.o_proj
    projection.register_forward_pre_hook(lambda _, given: given[0] * given[0].sigmoid())
    with pytest.raises(UnsupportedModelError, match="does not pass the mixed values") as refused:
        attlas.explain(llama, TEXT, "value_weighted_attention")
    assert not isinstance(refused.value, NotDefinedError)


@pytest.mark.parametrize("family", ["BitNet", "DiffLlama"])
def test_mixed_values_behind_a_norm_have_no_terms(family):
    normed = small(family, "ForCausalLM", "bpe", **LLAMA_SHAPE)
    with pytest.raises(NotDefinedError, match=r"applies a norm to the mixed values of .*layers\.0"):
        attlas.explain(normed, TEXT, "value_weighted_attention")


def test_cross_attention_has_no_part_of_its_own():
    task = "sequence to sequence"
    text = TEXTS[task][0]
    found = attlas.explain(subject(task), text, "value_weighted_attention", **ASKED[task])
    model, kept = plain(task), {}
    block = model.decoder.block[-1].layer[1].EncDecAttention
    handle = block.v.register_forward_hook(lambda *call: kept.setdefault("v", call[2]))
    with torch.no_grad():
        given = arguments(task, text, ASKED[task]["prefix"])
        output = model(**given, output_attentions=True)
    handle.remove()
    values = kept["v"][0].unflatten(-1, (HEADS, WIDTH))
    slices = block.o.weight.detach().unflatten(1, (HEADS, WIDTH))
    row = torch.einsum("hk,khw,fhw->kf", output.cross_attentions[-1][0, :, -1], values, slices)
    source = row.norm(dim=-1)
    np.testing.assert_allclose(found.scores[: len(source)], source, rtol=1e-4, atol=1e-5)
    assert [note.split(":")[0] for note in found.notes] == ["decoder.1"]
    rolled = attlas.explain(
        subject(task), text, "value_weighted_attention", rolled_out=True, **ASKED[task]
    )
    assert rolled.scores.sum() == pytest.approx(1, abs=1e-5)
    with pytest.raises(UnsupportedModelError, match="residual and rolled_out cannot be combined"):
        attlas.explain(
            subject(task),
            text,
            "value_weighted_attention",
            rolled_out=True,
            residual=True,
            **ASKED[task],
        )


def test_scores_are_the_same_without_maps():
    question = ask("causal lm")
    first, second = (
        value_weighted_attention(replace(question, maps=maps), layer=0) for maps in (True, False)
    )
    torch.testing.assert_close(first.scores, second.scores)
    assert first.maps and not second.maps


def test_what_is_refused():
    with pytest.raises(UnsupportedModelError, match="it is for encoders like BERT"):
        attlas.explain(subject("causal lm"), "a cat", "value_weighted_attention", layer_norm=True)
    parallel = small("GPTNeoX", "ForCausalLM", "bpe", **{**LLAMA_SHAPE, "num_key_value_heads": 4})
    attlas.explain(parallel, "a cat", "value_weighted_attention")
    with pytest.raises(UnsupportedModelError, match="residual cannot be used"):
        attlas.explain(parallel, "a cat", "value_weighted_attention", residual=True)
    xlnet = small("XLNet", "ForSequenceClassification", **XLNET_SHAPE)
    with pytest.raises(UnsupportedModelError, match=r"XLNet.* to a linear projection"):
        attlas.explain(xlnet, "a cat", "value_weighted_attention")


def test_a_model_that_scales_what_it_mixed_is_refused():
    model, tokenizer = deepcopy(subject(TASK).model), subject(TASK).tokenizer

    def halve(_module, arguments, output):
        return (output[0] / 2, *output[1:])

    model.bert.encoder.layer[1].attention.self.register_forward_hook(halve)
    with pytest.raises(
        UnsupportedModelError, match=r"does not pass the mixed values of .*layer\.1"
    ):
        attlas.explain(attlas.Subject(model, tokenizer), TEXT, "value_weighted_attention")
