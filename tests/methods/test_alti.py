"""ALTI against its formula, written out for BERT."""

import numpy as np
import pytest
import torch
from bert_by_hand import diagonal, layers_of, linear_norm
from subjects import on_eager
from tiny import subject_parts

import attlas
from attlas.methods import METHODS

TEXT = "the film was not good"


def contributions(layer):
    """c[i, j] = max(0, |y_i| - |y_i - T_i(x_j)|), in L1, rows summing to one."""
    matrix, bias = layer.named("attention.self.value")
    parts = layer.mixed(layer.given @ matrix.T + bias) + diagonal(layer.given)
    gain, shift = layer.named("attention.output.LayerNorm")
    before = layer.before_first_norm()
    parts = linear_norm(parts, before, gain, layer.eps)
    found = np.zeros(parts.shape[:2])
    output = linear_norm(before, before, gain, layer.eps) + shift
    for query in range(len(found)):
        for key in range(len(found)):
            distance = np.abs(output[query] - parts[query, key]).sum()
            found[query, key] = max(0.0, np.abs(output[query]).sum() - distance)
    return found / found.sum(axis=1, keepdims=True)


def test_is_the_product_of_the_contributions():
    model, words = subject_parts("sequence classification")
    asked = attlas.Subject(on_eager(model.double()), words)
    (question,) = asked.ask([TEXT])
    first, second = map(contributions, layers_of(model, question.inputs.arguments))
    found = METHODS["alti"].score(question, {})
    np.testing.assert_allclose(found.maps[0][1][0, 0], second @ first, rtol=1e-9)
    np.testing.assert_allclose(found.scores[0], (second @ first)[0], rtol=1e-6)
    assert float(found.scores.sum()) == pytest.approx(1)


def test_before_a_norm_the_output_is_the_stream_itself():
    model, words = subject_parts("causal lm")
    asked = attlas.Subject(on_eager(model.double()), words)
    (question,) = asked.ask([TEXT])
    expected = None
    with torch.no_grad():
        output = model.transformer(
            **question.inputs.arguments, output_hidden_states=True, output_attentions=True
        )
        for number, block in enumerate(model.transformer.h):
            given = output.hidden_states[number]
            values = block.attn.c_attn(block.ln_1(given)).split(given.shape[-1], dim=-1)[2]
            values = values.unflatten(-1, (block.attn.num_heads, -1))[0]
            matrix = block.attn.c_proj.weight.unflatten(0, (block.attn.num_heads, -1))
            parts = torch.einsum("hij,jhw,hwf->ijf", output.attentions[number][0], values, matrix)
            parts = parts + torch.eye(len(parts))[:, :, None] * given[0][:, None]
            whole = parts.sum(dim=1, keepdim=True) + block.attn.c_proj.bias
            near = whole.abs().sum(-1) - (whole - parts).abs().sum(-1)
            layer = near.clamp_min(0) / near.clamp_min(0).sum(-1, keepdim=True)
            expected = layer if expected is None else layer @ expected
    torch.testing.assert_close(METHODS["alti"].score(question, {}).maps[0][1][0, 0], expected)
