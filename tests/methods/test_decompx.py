"""DecompX against its formula, written out for BERT; its parts sum to the logit everywhere."""

import numpy as np
import pytest
import torch
from bert_by_hand import diagonal, gelu, layers_of, linear_norm
from subjects import LONG, ask, on_eager, plain, small, subject, takes
from tiny import FAMILIES, SECOND_ROAD, TASKS, TEXT, subject_parts, tokenizer

import attlas
from attlas.errors import UnsupportedModelError, UsageError
from attlas.methods import METHODS
from attlas.models.asking.scores import target_scores
from attlas.models.encoding.request import Request


def share_out(parts, bias):
    """AbsDot: a bias shared out among the parts `[…, k, feature]` of each row."""
    weights = np.abs(parts @ bias)
    weights = weights / weights.sum(axis=-1, keepdims=True)
    return parts + weights[..., None] * bias


def by_hand(model, inputs):
    """Every class's logit in parts, `[k, class]`, as the released code computes them."""
    parts = None
    for layer in layers_of(model, inputs):
        matrix, bias = layer.named("attention.self.value")
        output, rest = layer.named("attention.output.dense")
        if parts is None:  # below the first attention each token is its own, with all biases
            parts = layer.mixed(layer.given @ matrix.T + bias) + diagonal(layer.given)
        else:
            each = [layer.mixed(parts[:, k] @ matrix.T).sum(axis=1) for k in range(len(parts))]
            parts = np.stack(each, axis=1) + parts
            rest = rest + output @ bias
        parts = share_out(parts, rest)
        gain, shift = layer.named("attention.output.LayerNorm")
        parts = linear_norm(parts, layer.before_first_norm(), gain, layer.eps)
        parts = share_out(parts, shift)
        matrix, bias = layer.named("intermediate.dense")
        inner = share_out(parts @ matrix.T, bias)
        slope = gelu(layer.inner()) / layer.inner()
        matrix, bias = layer.named("output.dense")
        parts = parts + share_out((inner * slope[:, None]) @ matrix.T, bias)
        gain, shift = layer.named("output.LayerNorm")
        parts = linear_norm(parts, layer.before_second_norm(), gain, layer.eps)
        parts = share_out(parts, shift)
    weights = {name: value.detach().numpy() for name, value in model.named_parameters()}
    pooled = share_out(
        parts[0] @ weights["bert.pooler.dense.weight"].T, weights["bert.pooler.dense.bias"]
    )
    whole = pooled.sum(axis=0)
    pooled = pooled * (np.tanh(whole) / whole)
    return share_out(pooled @ weights["classifier.weight"].T, weights["classifier.bias"])


@pytest.fixture(scope="module")
def bert():
    model, words = subject_parts("sequence classification")
    return attlas.Subject(on_eager(model.double()), words)


@pytest.mark.parametrize("target", [0, 1, 2])
def test_is_the_published_decomposition(bert, target):
    (question,) = bert.ask([LONG], Request(target=target))
    expected = by_hand(bert.model, question.inputs.arguments)
    with torch.no_grad():
        logits = bert.model(**question.inputs.arguments).logits[0]
    np.testing.assert_allclose(expected.sum(axis=0), logits, rtol=1e-9)  # the oracle is whole
    found = METHODS["decompx"].score(question, {}).scores[0]
    np.testing.assert_allclose(found, expected[:, target], rtol=1e-7, atol=1e-12)


@pytest.mark.parametrize("task", [task for task in TASKS if takes("decompx", task)])
def test_the_parts_sum_to_the_logit(task):
    question = ask(task)
    found = METHODS["decompx"].score(question, {}).scores
    torch.testing.assert_close(
        found.sum(dim=1), target_scores(question, "logit"), rtol=1e-4, atol=1e-4
    )


def test_a_contrast_is_a_difference_of_logits():
    asked = subject("sequence classification")
    first, second, both = (
        attlas.explain(asked, LONG, "decompx", **target).scores
        for target in ({"target": 0}, {"target": 1}, {"target": 0, "contrast": 1})
    )
    np.testing.assert_allclose(both, first - second, atol=1e-5)


# By design: no norm, no bias, attention that is known


@pytest.fixture
def linear():
    """GPT-2 of one layer with uniform attention, values that are copied, and nothing else."""
    asked = small("GPT2", "LMHeadModel", "bpe", n_embd=8, n_layer=1, n_head=1, n_positions=64)
    model = asked.model
    with torch.no_grad():
        for block in model.transformer.h:
            block.ln_1, block.ln_2 = torch.nn.Identity(), torch.nn.Identity()
            block.attn.c_attn.weight.zero_()
            block.attn.c_attn.weight[:, 16:] = torch.eye(8)
            block.attn.c_attn.bias.zero_()
            block.attn.c_proj.weight.copy_(2 * torch.eye(8))
            block.attn.c_proj.bias.zero_()
            block.mlp.c_proj.weight.zero_()
            block.mlp.c_proj.bias.zero_()
        model.transformer.ln_f = torch.nn.Identity()
    return asked


def test_where_all_is_linear_the_parts_are_the_weights(linear):
    (question,) = linear.ask(["a cat"], Request(target=7))
    ids = question.inputs.arguments["input_ids"][0]
    model = linear.model.transformer
    entered = (model.wte(ids) + model.wpe(torch.arange(len(ids)))).detach()
    logits = entered @ linear.model.lm_head.weight[7].detach()
    expected = 2 * logits / len(ids)  # every token by uniform attention, doubled
    expected[-1] += logits[-1]  # and the last by its bypass
    found = METHODS["decompx"].score(question, {}).scores[0]
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-5)


# Families


# Norms before, after and on both sides, written out or not; gates; attention and feed-forward side
# by side; grouped heads, windows, soft caps; attention on either road.
ONE_STACK = (
    *("albert", "modernbert", "opt", "qwen3", "gemma2", "olmo2", "cohere2"),
    *("deberta_v2", "mpnet", "bloom", "falcon", "gptj"),
)


@pytest.mark.parametrize("family", ONE_STACK)
def test_in_every_family_the_parts_sum_to_the_logit(family, monkeypatch):
    words = tokenizer("wordpiece")
    monkeypatch.setitem(TEXT, "vocab_size", len(words))
    case = {**FAMILIES, **SECOND_ROAD}[family]()
    asked = attlas.Subject(on_eager(case.model.double()), words)
    (question,) = asked.ask([case.inputs["input_ids"][0].tolist()])
    found = METHODS["decompx"].score(question, {}).scores
    # Many compute their norms in float32, whatever they are loaded in.
    torch.testing.assert_close(
        found.sum(dim=1), target_scores(question, "logit"), rtol=2e-6, atol=2e-6
    )
    assert found.dtype == torch.float64 and (found != 0).sum() > 4


def test_a_sum_that_is_off_is_told():
    model, words = subject_parts("sequence classification")

    class Doubled(torch.nn.LayerNorm):
        def forward(self, states):
            normed = super().forward(states)
            normed.data.mul_(2)  # behind the back of whatever follows it
            return normed

    norm = model.bert.encoder.layer[1].output.LayerNorm
    norm.__class__ = Doubled
    with pytest.raises(UnsupportedModelError, match=r"do not sum to what .* off by \d"):
        attlas.explain(attlas.Subject(model, words), LONG, "decompx")


def test_a_string_of_several_tokens_is_no_logit():
    with pytest.raises(UsageError, match="several tokens, whose probability is no sum"):
        attlas.explain(subject("causal lm"), LONG, "decompx", target=" the dog")


def test_what_comes_later_has_no_part():
    question = ask("causal lm")
    plain_logits = plain("causal lm")(**question.inputs.arguments).logits
    place = -3
    choice = int(plain_logits[0, place].argmax())
    asked = ask("causal lm", target=attlas.Target("it", ((place, choice),)))
    found = METHODS["decompx"].score(asked, {}).scores[0]
    assert not found[place + 1 :].any() and found[: place + 1].all()
