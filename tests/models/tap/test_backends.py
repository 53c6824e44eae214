"""The opened model is the function that the user's own backend computes, where eager is another."""

import pytest
import tiny
import torch
from subjects import subject

import attlas
from attlas.errors import UnsupportedModelError
from attlas.models.asking.as_found import distance, rounding
from attlas.models.facts import transformers_internals as internals
from attlas.models.tap import edits, opening
from attlas.models.tap.opening import tap

KOSMOS = {
    "text_config": {
        **{"vocab_size": 96, "embed_dim": 32, "layers": 2, "attention_heads": 4, "ffn_dim": 64},
        **{"max_position_embeddings": 64, **tiny.SPECIAL_IDS},
    },
    "vision_config": {**tiny.TOWER, **tiny.IMAGE},
    "latent_query_num": 5,
}


def falcon():
    shape = {**tiny.SIZES, "max_position_embeddings": 64, "alibi": True}
    return tiny.build("Falcon", "ForCausalLM", {**tiny.TEXT, **shape}), tiny.text_inputs()


def kosmos():
    inputs = {**tiny.text_inputs(), **tiny.image_inputs()}
    places = torch.zeros_like(inputs["input_ids"])
    places[:, 1:6] = 1
    model = tiny.build("Kosmos2", "ForConditionalGeneration", KOSMOS)
    return model, {**inputs, "image_embeds_position_mask": places}


def run(model, inputs):
    with torch.no_grad():
        return model(**inputs).logits


def on_eager(model):
    return internals.implementation(internals.configurations(model), "eager")


def alibi_attention(model, ids):
    """The first layer's attention by the definition of alibi: a slope times the key's place."""
    layer, tokens = model.transformer.h[0], ids.shape[1]
    with torch.no_grad():
        states = layer.input_layernorm(model.transformer.word_embeddings(ids))
        mixed = layer.self_attention.query_key_value(states).view(1, tokens, 6, 8)
    query, key = mixed[:, :, :4].transpose(1, 2), mixed[:, :, [4]].transpose(1, 2)
    slopes = torch.tensor([2.0**-2, 2.0**-4, 2.0**-6, 2.0**-8])[:, None, None]
    scores = (query @ key.mT + slopes * torch.arange(tokens)) / 8**0.5
    hidden = torch.ones(tokens, tokens, dtype=torch.bool).triu(1)
    return scores.masked_fill(hidden, -torch.inf).softmax(-1)


def test_falcon_with_alibi_is_opened_as_sdpa_computes_it():
    model, inputs = falcon()
    found = run(model, inputs)
    with on_eager(model):
        assert (run(model, inputs) - found).abs().max() > 0.1  # it adds alibi twice
    with tap(model) as seen:
        assert torch.equal(run(model, inputs), found)
    expected = alibi_attention(model, inputs["input_ids"])
    torch.testing.assert_close(seen.weights[0], expected, atol=1e-5, rtol=0)
    with tap(model, [edits.apply(torch.clone)]):
        torch.testing.assert_close(run(model, inputs), found, atol=1e-4, rtol=0)
    assert torch.equal(run(model, inputs), found)


def test_falcon_that_came_on_eager_is_opened_as_eager_computes_it():
    model, inputs = falcon()
    with on_eager(model):
        expected = run(model, inputs)
        with tap(model):
            assert torch.equal(run(model, inputs), expected)


def test_a_causal_module_without_a_mask_sees_what_sdpa_lets_it_see():
    model, inputs = kosmos()
    found = run(model, inputs)
    with tap(model) as seen:
        torch.testing.assert_close(run(model, inputs), found, atol=1e-4, rtol=1e-4)
    (read,) = [call.weights for call in seen.calls if call.path.endswith("x_attn")]
    assert not read.triu(1).any()
    torch.testing.assert_close(read.sum(-1), torch.ones(read.shape[:-1]))
    with on_eager(model):
        expected = run(model, inputs)
        assert (expected - found).abs().max() > 0.1  # there each query sees every key
        with tap(model):
            assert torch.equal(run(model, inputs), expected)


def test_check_judges_a_model_whose_eager_is_another_function():
    model, _ = falcon()
    words = tiny.tokenizer("bpe")
    model.resize_token_embeddings(len(words))
    found = attlas.check(attlas.Subject(model, words))
    assert found.passed and not found.to_the_bit and found.distance == 0
    answers = dict(found._answers())
    assert "its eager is another function" in answers["opened exactly"]
    assert "sdpa; opened" in answers["came with"] and "rounding" in answers["came with"]


def test_a_model_that_opens_as_another_function_is_refused_by_name(monkeypatch):
    eager = opening.run_eager

    def sharper(module, query, *rest, **given):
        return eager(module, query * 1.1, *rest, **given)

    monkeypatch.setattr(opening, "run_eager", sharper)
    whole = subject("sequence classification")
    again = attlas.Subject(whole.model, whole.tokenizer)
    with pytest.raises(UnsupportedModelError, match=r"BertForSeq.* on sdpa, and rounding expl"):
        _ = again.sites
    with on_eager(whole.model):  # the user's own choice
        assert attlas.Subject(whole.model, whole.tokenizer).sites


def test_distances_are_shares_of_the_largest_output():
    found = torch.tensor([[2.0, -10.0, torch.inf]])
    assert distance(found, found) == 0
    assert distance(found + torch.tensor([0.5, 0, 0]), found) == pytest.approx(0.05)
    assert rounding(torch.float64) == rounding(torch.float32) == pytest.approx(1.2e-4, rel=0.01)
    assert rounding(torch.bfloat16) == 0.5
