"""AttnLRP against a Llama written out for it, and what holds of its scores."""

from functools import cache

import pytest
import torch
from subjects import TEXTS, subject
from tiny import GPT2_SHAPE, LLAMA_SHAPE, subject_parts, text_subject

import attlas
from attlas.errors import UnknownNameError

METHOD = "attn_lrp"
TEXT = "the film was not good"


@cache
def llama():
    return text_subject("Llama", "ForCausalLM", "wordpiece", **LLAMA_SHAPE)


def scores(asked, text=TEXT, **options):
    return torch.from_numpy(attlas.explain(asked, text, METHOD, **options).scores)


def norm(module, x):
    """A norm whose scale is no function of what it norms."""
    size = (x.detach().square().mean(-1, keepdim=True) + module.variance_epsilon).rsqrt()
    return module.weight * x * size


def half(x):
    """The same, with half of the gradient."""
    return x / 2 + x.detach() / 2


def turned(x, cos, sin):
    first, second = x.chunk(2, dim=-1)
    return x * cos + torch.cat([-second, first], dim=-1) * sin


def attend(module, x, rotary, variant):
    heads = [
        layer(x).unflatten(-1, (-1, module.head_dim)).transpose(1, 2)
        for layer in (module.q_proj, module.k_proj, module.v_proj)
    ]
    query, key = (turned(each, *rotary) for each in heads[:2])
    key, value = (each.repeat_interleave(2, dim=1) for each in (key, heads[2]))
    scores = query @ key.mT * module.head_dim**-0.5
    scores = scores if variant == "cp" else half(scores)
    unseen = ~torch.ones(scores.shape[-2:], dtype=torch.bool).tril()
    weights = scores.masked_fill(unseen, -torch.inf).softmax(-1)
    mixed = weights.detach() @ value if variant == "cp" else half(weights @ value)
    return module.o_proj(mixed.transpose(1, 2).flatten(2))


def gated(module, x, variant):
    gate = module.gate_proj(x)
    # All of the relevance of silu(gate) is the gate's: a factor that stands still.
    opened = gate * torch.sigmoid(gate).detach()
    product = opened.detach() * module.up_proj(x)
    return module.down_proj(product if variant == "cp" else half(opened * module.up_proj(x)))


def by_hand(text, choice, variant):
    """Embedding times gradient, with every rule written into the forward pass."""
    model, tokenizer = llama()
    ids = tokenizer(text, return_tensors="pt")["input_ids"]
    leaf = model.model.embed_tokens(ids).detach().requires_grad_()
    rotary = model.model.rotary_emb(leaf, torch.arange(ids.shape[1])[None])
    stream = leaf
    for block in model.model.layers:
        x = norm(block.input_layernorm, stream)
        stream = stream + attend(block.self_attn, x, [each[:, None] for each in rotary], variant)
        stream = stream + gated(block.mlp, norm(block.post_attention_layernorm, stream), variant)
    logit = model.lm_head(norm(model.model.norm, stream))[0, -1, choice]
    expected = model(ids).logits[0, -1, choice]
    torch.testing.assert_close(logit, expected, atol=1e-4, rtol=1e-4)
    return (leaf * torch.autograd.grad(logit, leaf)[0])[0].sum(-1).detach(), expected.item()


@pytest.mark.parametrize("variant", ["attn", "cp"])
def test_is_the_embedding_times_the_changed_gradient(variant):
    expected, logit = by_hand(TEXT, 7, variant)
    found = scores(attlas.Subject(*llama()), target=7, variant=variant)
    torch.testing.assert_close(found, expected, atol=1e-4, rtol=1e-4)
    conserved = abs(float(found.sum()) - logit) < 1e-4 * found.abs().sum()
    assert conserved == (variant == "cp")


def test_positions_count_to_their_tokens():
    """With nothing but positions to go by, tokens still have all of the logit."""
    model, tokenizer = text_subject("GPT2", "LMHeadModel", "bpe", **GPT2_SHAPE)
    model.lm_head.weight = torch.nn.Parameter(model.lm_head.weight.detach().clone())
    with torch.no_grad():
        model.transformer.wte.weight.zero_()
        for name, parameter in model.named_parameters():
            if name.endswith("bias"):
                parameter.zero_()
    found = attlas.explain(attlas.Subject(model, tokenizer), TEXT, METHOD, variant="cp", target=7)
    assert found.scores.sum() == pytest.approx(found.target.value, rel=1e-4)
    assert abs(found.scores).min() > 0


def test_the_class_token_of_an_image_has_its_own():
    task = "image classification"
    found = attlas.explain(subject(task), TEXTS[task][0], METHOD)
    assert abs(found.scores[0]) > 1e-3


def test_the_vector_of_a_class_token_is_counted_once():
    model, processor = subject_parts("image classification")
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if name.endswith("bias") or name.endswith("position_embeddings"):
                parameter.zero_()
        model.vit.embeddings.patch_embeddings.projection.weight.zero_()
    found = attlas.explain(
        attlas.Subject(model, processor), TEXTS["image classification"][0], METHOD, variant="cp"
    )
    assert not found.scores[1:].any()
    assert found.scores[0] == pytest.approx(found.target.value, rel=1e-4)


def test_a_contrast_is_a_difference():
    asked = subject("sequence classification")
    first, second, both = (
        scores(asked, **given)
        for given in ({"target": 2}, {"target": 0}, {"target": 2, "contrast": 0})
    )
    torch.testing.assert_close(both, first - second, atol=1e-5, rtol=1e-4)


def test_a_model_that_is_linear_in_its_words_gives_each_its_own():
    """Without attention and feed-forward layers, only the last token has a say."""
    model, tokenizer = text_subject("GPT2", "LMHeadModel", "bpe", **{**GPT2_SHAPE, "n_layer": 1})
    block = model.transformer.h[0]
    with torch.no_grad():
        for layer in (block.attn.c_proj, block.mlp.c_proj):
            layer.weight.zero_()
            layer.bias.zero_()
    found = attlas.explain(attlas.Subject(model, tokenizer), TEXT, METHOD, target=7)
    assert not found.scores[:-1].any()
    last = model.transformer.ln_f
    taken = (model.lm_head.weight[7] @ last.bias).item()
    assert found.scores[-1] == pytest.approx(found.target.value - taken, rel=1e-4, abs=1e-5)


def test_variants_are_named():
    with pytest.raises(UnknownNameError, match="unknown variant 'cpp': did you mean 'cp'"):
        scores(subject("causal lm"), variant="cpp")
