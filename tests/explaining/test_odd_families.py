"""Families that broke a method: they give a result, or one line that says by name why not."""

from __future__ import annotations

import math

import pytest
import tiny
import torch
from PIL import Image
from torch import Tensor, nn
from transformers import Gemma3nForCausalLM, Gemma3nTextConfig, ViTImageProcessorPil

import attlas
from attlas.errors import AttlasError, UnsupportedModelError
from attlas.methods.attention_rollout import Rolling
from attlas.methods.support.token_rows import read_row
from attlas.models.asking.readout import shares

TEXT = "the film was not good"
SIZES = {"vocab_size": 400, "pad_token_id": 1, "bos_token_id": 0, "eos_token_id": 2}
GPT2 = {**SIZES, "n_embd": 32, "n_layer": 2, "n_head": 4, "n_positions": 64}
CTRL = {**SIZES, "n_embd": 32, "n_layer": 2, "n_head": 4, "n_positions": 64, "dff": 32}
XLM = {**SIZES, "emb_dim": 32, "n_layers": 2, "n_heads": 4, "max_position_embeddings": 64}
STACK = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4}
LAYERS = {**STACK, "intermediate_size": 64}


def subject(family: str, head: str, settings: dict, kind: str = "word_level") -> attlas.Subject:
    return attlas.Subject(tiny.build(family, head, settings), tiny.tokenizer(kind))


def test_a_block_runs_again_where_the_model_would_keep_a_cache():
    asked = subject("GPT2", "ForQuestionAnswering", GPT2)
    assert "use_cache" not in asked.parameters and asked.model.config.use_cache
    found = attlas.explain(asked, ("who was it", TEXT), "value_zeroing")
    assert asked.model.config.use_cache  # put back
    asked.model.config.use_cache = False
    without = attlas.explain(asked, ("who was it", TEXT), "value_zeroing")
    assert torch.equal(torch.tensor(found.scores), torch.tensor(without.scores))
    assert found.scores.sum() == pytest.approx(1, abs=1e-5)


def test_a_model_that_writes_into_its_embeddings_has_gradients():
    asked = subject("CTRL", "LMHeadModel", CTRL)
    found = attlas.explain(asked, TEXT, "input_x_gradient")
    ids = torch.tensor([asked.tokenizer(TEXT)["input_ids"]])
    leaf = asked.model.get_input_embeddings()(ids).detach().requires_grad_()
    logits = asked.model(inputs_embeds=leaf * 1, use_cache=False).logits[0, -1]
    (slope,) = torch.autograd.grad(logits.max(), leaf)
    expected = (leaf * slope).sum(dim=-1)[0].detach()
    torch.testing.assert_close(torch.tensor(found.scores), expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("method", ["gradient", "attn_lrp", "hidden_token_attribution"])
def test_tokens_that_enter_unseen_are_told(method):
    settings = {**LAYERS, "num_hash_functions": 2, "num_hash_buckets": 16, "downsampling_rate": 2}
    asked = subject(
        "Canine", "ForSequenceClassification", {**settings, "local_transformer_stride": 8}
    )
    with pytest.raises(UnsupportedModelError, match="input_ids do not enter this model"):
        attlas.explain(asked, TEXT, method)
    with pytest.raises(UnsupportedModelError, match="positions"):
        attlas.explain(asked, TEXT, "attention_rollout")


def siglip() -> attlas.Subject:
    settings = {"vision_config": {**LAYERS, **tiny.IMAGE}, "text_config": LAYERS, "num_labels": 3}
    model = tiny.build("Siglip", "ForImageClassification", settings)
    sides = {"height": 32, "width": 32}
    return attlas.Subject(model, ViTImageProcessorPil(size=sides, crop_size=sides))


def test_attention_beside_the_prediction_is_not_a_site():
    asked, picture = siglip(), Image.effect_noise((32, 32), 80).convert("RGB")
    assert [site.name for site in asked.sites] == ["vision.0", "vision.1"]  # not the pooler's
    found = attlas.explain(asked, picture, "raw_attention")
    expected = attention_where_it_is_read(asked, picture)
    torch.testing.assert_close(torch.tensor(found.scores), expected, rtol=1e-3, atol=1e-5)
    assert attlas.explain(asked, picture, "attention_rollout").scores.sum() == pytest.approx(1)


def attention_where_it_is_read(asked: attlas.Subject, picture: Image.Image) -> Tensor:
    """The last layer's attention, each row as heavy as the gradient of the logit on its state."""
    states: list[Tensor] = []

    def keep(_: nn.Module, __: object, output: Tensor) -> None:
        states.append(output)

    last = asked.model.vision_model.encoder.layers[-1]
    handle = last.register_forward_hook(keep)
    asked.model.set_attn_implementation("eager")
    pixels = asked.image_processor(images=picture, return_tensors="pt")["pixel_values"]
    output = asked.model(pixels, output_attentions=True)
    handle.remove()
    (slope,) = torch.autograd.grad(output.logits.max(), states[0])
    rows = slope[0].norm(dim=-1)
    return (rows / rows.sum()) @ output.attentions[-1][0].mean(dim=0).detach()


@pytest.mark.parametrize("method", ["attattr", "value_zeroing"])
def test_attention_modules_in_a_list_of_their_own_are_no_blocks(method):
    asked = subject("XLM", "ForSequenceClassification", XLM)
    with pytest.raises(UnsupportedModelError, match="XLMForSequenceClassification cannot be run b"):
        attlas.explain(asked, TEXT, method)


@pytest.mark.parametrize("method", ["attn_lrp", "lrp_relevance"])
def test_relevance_passes_models_that_write_into_their_scores(method):
    asked = subject("XLM", "ForSequenceClassification", XLM)
    found = attlas.explain(asked, TEXT, method)
    assert math.isfinite(found.scores.sum()) and found.scores.any()


def test_several_streams_are_read_together():
    torch.manual_seed(0)
    gradient = torch.randn(2, 3, 4, 5)  # batch, token, stream, feature
    norms = gradient.reshape(2, 3, 20).square().sum(-1).sqrt()
    torch.testing.assert_close(shares(gradient), norms / norms.sum(-1, keepdim=True))


def test_streams_that_come_first_are_not_taken_for_tokens():
    model = Gemma3nForCausalLM(Gemma3nTextConfig(**gemma3n())).eval()
    tiny.widen(model, tiny.SPREAD)
    asked = attlas.Subject(model, tiny.tokenizer("word_level"))
    assert asked.stream_axes == (1, 2)
    found = attlas.explain(asked, TEXT, "raw_attention")
    ids = torch.tensor([asked.tokenizer(TEXT)["input_ids"]])
    asked.model.set_attn_implementation("eager")
    last = asked.model(ids, output_attentions=True, use_cache=False).attentions[-1]
    expected = last[0, :, -1].mean(dim=0).detach()
    torch.testing.assert_close(torch.tensor(found.scores), expected, rtol=1e-3, atol=1e-5)


def gemma3n() -> dict:
    sizes = {**SIZES, **STACK, "head_dim": 8, "num_key_value_heads": 2, "laurel_rank": 4}
    inner = {"vocab_size_per_layer_input": 400, "hidden_size_per_layer_input": 8}
    layers = {"intermediate_size": [64, 64], "activation_sparsity_pattern": [0.0, 0.0]}
    kinds = {"layer_types": ["sliding_attention", "full_attention"], "num_kv_shared_layers": 0}
    return {**sizes, **inner, **layers, **kinds, "altup_num_inputs": 2, "sliding_window": 64}


def test_a_model_that_fails_by_itself_is_told_by_name():
    asked = subject("Bros", "ForTokenClassification", {**SIZES, **LAYERS, "dim_bbox": 8})
    with pytest.raises(UnsupportedModelError) as told:
        attlas.explain(asked, TEXT, "random_scores")
    assert str(told.value) == (
        "BrosForTokenClassification fails on this input: ValueError: You have to specify bbox"
    )


def test_a_picture_that_is_not_enough_for_a_model_is_told_by_name():
    model = siglip().model

    def needs_more(pixel_values: Tensor, sizes: Tensor | None = None) -> None:
        raise AttributeError("'NoneType' object has no attribute 'shape'")

    model.forward = needs_more
    asked = attlas.Subject(model, siglip().image_processor)
    with pytest.raises(UnsupportedModelError, match="SiglipForImageClassification fails on this"):
        attlas.explain(asked, Image.new("RGB", (32, 32)), "random_scores")


def test_layers_that_run_past_hooks_are_told():
    settings = {**SIZES, **LAYERS, "embedding_size": 32, "max_position_embeddings": 64}
    asked = subject("SqueezeBert", "ForSequenceClassification", settings)
    with pytest.raises(UnsupportedModelError, match="past torch's hooks"):
        attlas.explain(asked, TEXT, "raw_attention")


def test_maps_of_other_sizes_are_refused_and_not_multiplied():
    rolling = Rolling(0.5)
    rolling.add("encoder", torch.full((1, 9, 9), 1 / 9))
    with pytest.raises(UnsupportedModelError, match="over 2 positions cannot follow a layer of 9"):
        rolling.add("encoder", torch.full((1, 2, 2), 1 / 2))
    with pytest.raises(UnsupportedModelError, match="of 2 positions has no rows for the 9"):
        read_row(torch.ones(1, 2, 2), torch.ones(1, 9))


def test_what_our_own_code_refuses_keeps_its_words():
    asked = subject("GPT2", "ForSequenceClassification", GPT2)

    def refuse(*_: object) -> None:
        raise AttlasError("in our words")

    handle = asked.model.score.register_forward_hook(refuse)
    try:
        with pytest.raises(AttlasError, match=r"^in our words$"):
            attlas.explain(asked, TEXT, "random_scores")
    finally:
        handle.remove()
    assert isinstance(asked.model, nn.Module)
