"""What is saved without heads: what attlas.load opens, and what transformers alone does."""

import json

import pytest
import tiny
import torch
from subjects import small

import attlas

CLASSIFIES, WRITES = "ForSequenceClassification", "ForConditionalGeneration"
GROUPED = {**tiny.LLAMA_SHAPE, "head_dim": 8}
T5 = ("T5", WRITES, "unigram", {**tiny.T5_SHAPE, "spread": tiny.UNSCALED_SPREAD})

# Families whose configuration knows the width of a head beside their number.
SAY = {
    "llama": ("Llama", "ForCausalLM", "bpe", tiny.LLAMA_SHAPE),
    "mistral": ("Mistral", "ForCausalLM", "bpe", tiny.LLAMA_SHAPE),
    "qwen2": ("Qwen2", "ForCausalLM", "bpe", tiny.LLAMA_SHAPE),
    "qwen3": ("Qwen3", "ForCausalLM", "bpe", GROUPED),
    "gemma2": ("Gemma2", "ForCausalLM", "bpe", GROUPED),
}
# Families that take it to be the size of the stream over the number of heads.
CANNOT_SAY = {
    "bert": ("Bert", CLASSIFIES, "wordpiece", tiny.BERT_SHAPE),
    "roberta": ("Roberta", CLASSIFIES, "bpe", tiny.BERT_SHAPE),
    "electra": ("Electra", CLASSIFIES, "wordpiece", tiny.BERT_SHAPE),
    "distilbert": ("DistilBert", CLASSIFIES, "wordpiece", tiny.DISTILBERT_SHAPE),
    "albert": ("Albert", CLASSIFIES, "wordpiece", {**tiny.BERT_SHAPE, "embedding_size": 16}),
    "gpt2": ("GPT2", "LMHeadModel", "bpe", tiny.GPT2_SHAPE),
    "opt": ("OPT", "ForCausalLM", "bpe", tiny.OPT_SHAPE),
    "bart": ("Bart", WRITES, "unigram", tiny.BART_SHAPE),
}


def build(family):
    name, head, words, shape = family
    return small(name, head, words, **shape)


@torch.no_grad()
def logits(model, subject):
    if hasattr(model, "vit"):
        pixels = torch.rand((1, 3, 32, 32), generator=torch.Generator().manual_seed(5))
        return model(pixel_values=pixels).logits
    ids = torch.randint(6, 90, (1, 9), generator=torch.Generator().manual_seed(5))
    given = {"input_ids": ids, "attention_mask": torch.ones_like(ids)}
    if subject.has_decoder:
        given["decoder_input_ids"] = ids[:, 2:7]
    return model(**given).logits


def switched_off(subject, heads):
    with attlas.prune(subject, heads):
        return logits(subject.model, subject)


def saved(subject, heads, folder):
    smaller = attlas.prune(subject, heads, permanently=True)
    smaller.model.save_pretrained(folder)
    subject.tokenizer.save_pretrained(folder)
    return type(smaller.model)


def assert_close(given, expected):
    torch.testing.assert_close(given, expected, atol=1e-5, rtol=1e-5)


def assert_plain(subject, heads, folder):
    """The folder is one like any other, and transformers opens it."""
    model_class, expected = saved(subject, heads, folder), switched_off(subject, heads)
    assert not [name for name in read_configuration(folder) if "attlas" in name]
    assert_close(logits(model_class.from_pretrained(folder), subject), expected)
    assert_close(logits(attlas.load(folder, device="cpu").model, subject), expected)


def read_configuration(folder):
    return json.loads((folder / "config.json").read_text("utf-8"))


@pytest.mark.parametrize("family", SAY)
def test_a_configuration_that_can_say_what_is_left_says_it(family, tmp_path):
    subject = build(SAY[family])
    heads = {site.name: ([0, 1], [2, 3])[site.layer % 2] for site in subject.sites}
    assert_plain(subject, heads, tmp_path)


def test_so_does_that_of_a_model_of_pictures(tmp_path):
    subject = attlas.Subject(*tiny.image_subject())
    assert_plain(subject, {site.name: [site.layer] for site in subject.sites}, tmp_path)


def test_t5_says_it_where_the_layers_that_share_a_position_bias_lose_the_same_heads(tmp_path):
    subject = build(T5)
    own = {"encoder": 1, "decoder": 2}  # cross-attention has no position bias
    heads = {site.name: [own.get(site.kind, site.layer)] for site in subject.sites}
    assert_plain(subject, heads, tmp_path)


def assert_only_here(subject, heads, folder):
    """attlas.load opens the folder; transformers alone raises, and the folder says why."""
    model_class, expected = saved(subject, heads, folder), switched_off(subject, heads)
    assert_close(logits(attlas.load(folder, device="cpu").model, subject), expected)
    with pytest.raises(RuntimeError, match="mismatch"):
        model_class.from_pretrained(folder)
    assert "open the folder with attlas.load" in read_configuration(folder)["attlas_note"]


@pytest.mark.parametrize("family", CANNOT_SAY)
def test_a_configuration_that_cannot_say_it_is_refused_by_transformers(family, tmp_path):
    subject = build(CANNOT_SAY[family])
    assert_only_here(subject, {site.name: [1] for site in subject.sites}, tmp_path)


@pytest.mark.parametrize("family", ["llama", "t5"])
def test_so_is_one_of_layers_that_keep_different_numbers(family, tmp_path):
    subject = build({**SAY, "t5": T5}[family])
    assert_only_here(subject, {subject.sites[0]: [0, 1]}, tmp_path)


def test_so_is_t5_where_layers_that_shared_a_position_bias_lose_different_heads(tmp_path):
    subject = build(T5)
    assert_only_here(subject, {site.name: [site.layer] for site in subject.sites}, tmp_path)


def test_what_is_said_is_said_no_more_where_the_layers_are_alike_again(tmp_path):
    subject = build(SAY["llama"])
    once = attlas.prune(subject, {"decoder.0": [0, 1]}, permanently=True)
    assert "attlas_note" in vars(once.model.config)
    assert_plain(once, {"decoder.1": [0, 1]}, tmp_path)
