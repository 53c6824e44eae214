"""GlobEnc against its formula, written out for BERT."""

import numpy as np
import pytest
import torch
from bert_by_hand import diagonal, layers_of, linear_norm
from subjects import on_eager
from tiny import SECOND_ROAD, TEXT, subject_parts, tokenizer

import attlas
from attlas.methods import METHODS

TEXT_ASKED = "the film was not good"


@pytest.fixture(scope="module")
def bert():
    model, words = subject_parts("sequence classification")
    return attlas.Subject(on_eager(model.double()), words)


def by_hand(model, inputs):
    """The product of the norms of N_ENC of each layer."""
    product = None
    for layer in layers_of(model, inputs):
        matrix, bias = layer.named("attention.self.value")
        parts = layer.mixed(layer.given @ matrix.T + bias) + diagonal(layer.given)
        gain, _ = layer.named("attention.output.LayerNorm")
        parts = linear_norm(parts, layer.before_first_norm(), gain, layer.eps)
        gain, shift = layer.named("output.LayerNorm")
        before = layer.before_second_norm()
        assert np.allclose(linear_norm(before, before, gain, layer.eps) + shift, layer.gave)
        parts = linear_norm(parts, before, gain, layer.eps)
        norms = np.linalg.norm(parts, axis=-1)
        product = norms if product is None else norms @ product
    return product / product.max()  # the scale of the whole means nothing


def test_is_the_product_of_the_norms_after_both_layer_norms(bert):
    (question,) = bert.ask([TEXT_ASKED])
    product = by_hand(bert.model, question.inputs.arguments)
    found = METHODS["globenc"].score(question, {})
    ((site, mixing),) = found.maps
    assert site.kind == "all"
    rows = product / product.max(axis=-1, keepdims=True)
    np.testing.assert_allclose(mixing[0, 0], rows, rtol=1e-9)
    np.testing.assert_allclose(found.scores[0], rows[0], rtol=1e-6)  # read from [CLS]


def test_a_feed_forward_is_left_out(bert):
    (question,) = bert.ask([TEXT_ASKED])
    model, words = subject_parts("sequence classification")
    with torch.no_grad():
        for layer in model.bert.encoder.layer:
            layer.output.dense.weight.zero_()
            layer.output.dense.bias.zero_()
    without = attlas.Subject(on_eager(model.double()), words)
    (other,) = without.ask([TEXT_ASKED])
    product = by_hand(model, other.inputs.arguments)
    rows = product / product.max(axis=-1, keepdims=True)
    np.testing.assert_allclose(METHODS["globenc"].score(other, {}).maps[0][1][0, 0], rows)
    first, second = (METHODS["globenc"].score(q, {}).scores for q in (question, other))
    assert not torch.allclose(first, second, rtol=1e-2)  # the spread that it caused is there


def pre_norm_by_hand(model, inputs):
    """GPT-2: the norm stands before the attention, and the stream is a plain sum."""
    with torch.no_grad():
        output = model.transformer(**inputs, output_hidden_states=True, output_attentions=True)
    product = None
    for number, block in enumerate(model.transformer.h):
        given = output.hidden_states[number]
        values = block.attn.c_attn(block.ln_1(given)).split(given.shape[-1], dim=-1)[2]
        values = values.unflatten(-1, (block.attn.num_heads, -1))[0]
        matrix = block.attn.c_proj.weight.unflatten(0, (block.attn.num_heads, -1))
        parts = torch.einsum("hij,jhw,hwf->ijf", output.attentions[number][0], values, matrix)
        parts = parts + torch.eye(len(parts))[:, :, None] * given[0][:, None]
        norms = parts.norm(dim=-1)
        product = norms if product is None else norms @ product
    return (product / product.amax(dim=-1, keepdim=True)).detach()


def test_before_a_norm_the_stream_is_a_plain_sum():
    model, words = subject_parts("causal lm")
    asked = attlas.Subject(on_eager(model.double()), words)
    (question,) = asked.ask([TEXT_ASKED])
    expected = pre_norm_by_hand(model, question.inputs.arguments)
    ((_, mixing),) = METHODS["globenc"].score(question, {}).maps
    torch.testing.assert_close(mixing[0, 0], expected)


def test_what_cannot_be_followed_is_refused(monkeypatch):
    words = tokenizer("wordpiece")
    monkeypatch.setitem(TEXT, "vocab_size", len(words))
    case = SECOND_ROAD["xlnet"]()
    asked = attlas.Subject(case.model, words)
    with pytest.raises(
        attlas.errors.UnsupportedModelError, match="cannot be divided into terms by token"
    ):
        attlas.explain(asked, case.inputs["input_ids"][0].tolist(), "globenc")
