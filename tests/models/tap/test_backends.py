"""The opened model is the function that the user's own backend computes, where eager is another."""

import pytest
import tiny
import torch
import transformers
from subjects import subject
from transformers.models.seamless_m4t_v2 import modeling_seamless_m4t_v2

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


SPEECH = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "num_mel_bins": 16}
SPEECH |= {"intermediate_size": 64, "subsampling_conv_channels": 8, "conv_kernel_size": 3}
SEAMLESS = {"hidden_size": 32, "feature_projection_input_dim": 16, "adaptor_kernel_size": 3}
SEAMLESS |= {f"speech_encoder_{name}": 2 for name in ("layers", "attention_heads", "chunk_size")}
SEAMLESS |= {"speech_encoder_intermediate_size": 64, "speech_encoder_left_chunk_num": 0}


def speech_encoder(family):
    """An encoder of speech, and frames of which the last 32 of the first row are filled in."""
    if family == "SeamlessM4Tv2":
        settings = transformers.SeamlessM4Tv2Config(**SEAMLESS)
        kind = modeling_seamless_m4t_v2.SeamlessM4Tv2SpeechEncoder
    else:
        settings = getattr(transformers, f"{family}EncoderConfig")(**SPEECH)
        kind = getattr(transformers, f"{family}Encoder")
    torch.manual_seed(0)
    model = kind(settings).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter += 0.1 * torch.randn_like(parameter)
    mask = torch.ones(2, 96, dtype=torch.long)
    mask[0, -32:] = 0
    return model, {"input_features": torch.randn(2, 96, 16), "attention_mask": mask}


@pytest.mark.parametrize("family", ["NemotronAsrStreaming", "SeamlessM4Tv2"])
def test_a_mask_that_eager_misreads_is_read_as_sdpa_reads_it(family):
    model, inputs = speech_encoder(family)

    def states():
        with torch.no_grad():
            return model(**inputs).last_hidden_state

    found = states()
    with tap(model) as seen:
        opened = states()
    assert distance(opened, found) < 1e-5
    assert torch.equal(states(), found)
    with on_eager(model):
        assert distance(states(), found) > 1e-3
    read = seen.weights[0]
    if family == "SeamlessM4Tv2":  # two frames see each other
        chunks = torch.arange(read.shape[-1]) // 2
        assert not read[1].masked_select(chunks[:, None] != chunks).any()
    else:
        frames = -(-64 // 8) + 1
        assert not read[0, :, : frames - 1, frames:].any() and read[1, :, :, frames:].any()


def test_attention_that_looks_both_ways_on_sdpa_does_so_when_opened():
    """Without a mask, as PaliGemma without a picture: on eager the same model is causal."""
    torch.manual_seed(0)
    sizes = {"vocab_size": 50, "hidden_size": 32, "num_hidden_layers": 2, "intermediate_size": 64}
    heads = {"num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 8}
    config = transformers.GemmaConfig(**sizes, **heads, use_bidirectional_attention=True)
    model = transformers.GemmaForCausalLM(config).eval()
    ids = torch.arange(1, 8)[None]

    def logits():
        with torch.no_grad():
            return model(ids).logits

    found = logits()
    with tap(model) as seen:
        opened = logits()
    assert distance(opened, found) < 1e-5 and torch.equal(logits(), found)
    assert seen.weights[0][..., 0, -1].all()  # the first token sees the last
    with on_eager(model):
        assert distance(logits(), found) > 1e-3


def test_check_judges_a_model_whose_eager_is_another_function():
    model, _ = falcon()
    words = tiny.tokenizer("bpe")
    model.resize_token_embeddings(len(words))
    found = attlas.check(attlas.Subject(model, words))
    assert found.passed and not found.to_the_bit and found.distance == 0
    answers = dict(found._answers())
    assert "its eager is another function" in answers["opened exactly"]
    assert answers["came with"] == "sdpa; opened, its output moves by nothing"


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
    assert rounding(found.double()) == rounding(found) == pytest.approx(1.2e-4, rel=0.01)
    assert rounding(found.bfloat16()) == 0.5


class OnGpu(torch.Tensor):
    is_cuda = True


def test_matrix_products_in_tf32_round_like_half_precision(monkeypatch):
    on_gpu = torch.ones(1).as_subclass(OnGpu)
    assert rounding(on_gpu) == pytest.approx(1.2e-4, rel=0.01)
    monkeypatch.setattr(torch, "get_float32_matmul_precision", lambda: "high")
    assert rounding(on_gpu) == rounding(torch.ones(1).half()) == 0.5
    assert rounding(torch.ones(1)) == pytest.approx(1.2e-4, rel=0.01)  # a processor has no tf32
