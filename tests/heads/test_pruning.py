"""Pruning: heads switched off are heads whose output is zero, and removed ones are gone."""

from copy import deepcopy

import numpy as np
import pytest
import tiny
import torch
from subjects import LONG, SHORT, small
from torch import nn

import attlas
from attlas.errors import UnsupportedModelError, UsageError

WIDTH, HIDDEN = 8, 32
WITH_BIAS = 3 * (HIDDEN + 1) * WIDTH + WIDTH * HIDDEN  # the parameters of one head
WITHOUT_BIAS = 4 * HIDDEN * WIDTH
GROUP = (2 + 1 + 1 + 2) * HIDDEN * WIDTH  # two heads and the keys and values they share
BUCKETS = tiny.T5_SHAPE["relative_attention_num_buckets"]
ENCODER = {"encoder.0": [0, 2], "encoder.1": [3]}
CLASSIFIES, WRITES = "ForSequenceClassification", "ForConditionalGeneration"
TRANSLATOR = {"encoder.0": [0], "encoder.1": [3, 2], "decoder.1": [1], "cross.0": [2]}

# Of each family: how to build it, the heads to remove, where the output projection of a site is,
# and how many parameters go. T5 loses a column of bias with a head, but where the layers of a stack
# lose different heads each gets a bias of its own: 3 + 2 columns for 4, and 4 + 3 for 4.
FAMILIES = {
    "bert": (
        ("Bert", CLASSIFIES, "wordpiece", tiny.BERT_SHAPE),
        ENCODER,
        {"encoder": "bert.encoder.layer.{}.attention.output.dense"},
        3 * WITH_BIAS,
    ),
    "roberta": (
        ("Roberta", CLASSIFIES, "bpe", tiny.BERT_SHAPE),
        ENCODER,
        {"encoder": "roberta.encoder.layer.{}.attention.output.dense"},
        3 * WITH_BIAS,
    ),
    "distilbert": (
        ("DistilBert", CLASSIFIES, "wordpiece", tiny.DISTILBERT_SHAPE),
        ENCODER,
        {"encoder": "distilbert.transformer.layer.{}.attention.out_lin"},
        3 * WITH_BIAS,
    ),
    "gpt2": (
        ("GPT2", "LMHeadModel", "bpe", tiny.GPT2_SHAPE),
        {"decoder.0": [1], "decoder.1": [0, 3]},
        {"decoder": "transformer.h.{}.attn.c_proj"},
        3 * WITH_BIAS,
    ),
    "llama": (
        ("Llama", "ForCausalLM", "bpe", tiny.LLAMA_SHAPE),
        {"decoder.1": [2, 3]},
        {"decoder": "model.layers.{}.self_attn.o_proj"},
        GROUP,
    ),
    "t5": (
        ("T5", WRITES, "unigram", {**tiny.T5_SHAPE, "spread": tiny.UNSCALED_SPREAD}),
        TRANSLATOR,
        {
            "encoder": "encoder.block.{}.layer.0.SelfAttention.o",
            "decoder": "decoder.block.{}.layer.0.SelfAttention.o",
            "cross": "decoder.block.{}.layer.1.EncDecAttention.o",
        },
        5 * WITHOUT_BIAS + (4 - 3 - 2) * BUCKETS + (4 - 4 - 3) * BUCKETS,
    ),
    "bart": (
        ("Bart", WRITES, "unigram", tiny.BART_SHAPE),
        TRANSLATOR,
        {
            "encoder": "model.encoder.layers.{}.self_attn.out_proj",
            "decoder": "model.decoder.layers.{}.self_attn.out_proj",
            "cross": "model.decoder.layers.{}.encoder_attn.out_proj",
        },
        5 * WITH_BIAS,
    ),
}


def build(family):
    name, head, words, shape = FAMILIES[family][0]
    return small(name, head, words, **shape)


def inputs_of(subject, seed=5):
    ids = torch.randint(6, 90, (2, 9), generator=torch.Generator().manual_seed(seed))
    given = {"input_ids": ids, "attention_mask": torch.ones_like(ids)}
    return {**given, "decoder_input_ids": ids[:, 2:7]} if subject.has_decoder else given


@torch.no_grad()
def logits(model, given):
    model.config.pad_token_id = 1
    return model(**given).logits


@torch.no_grad()
def by_hand(subject, heads, places):
    """The model with the output projection deaf to these heads: what they say is nothing."""
    model = deepcopy(subject.model)
    for site, numbers in heads.items():
        kind, layer = site.split(".")
        projection = model.get_submodule(places[kind].format(layer))
        features_in = (
            projection.weight.T if isinstance(projection, nn.Linear) else projection.weight
        )
        for head in numbers:
            features_in[head * WIDTH : (head + 1) * WIDTH] = 0
    return model


def assert_close(given, expected):
    torch.testing.assert_close(given, expected, rtol=1e-5, atol=1e-5 * float(expected.abs().max()))


def save(subject, folder):
    subject.model.save_pretrained(folder)
    subject.tokenizer.save_pretrained(folder)
    return folder


@pytest.mark.parametrize("family", FAMILIES)
def test_heads_are_switched_off_and_removed_alike(family, tmp_path):
    _, heads, places, lost = FAMILIES[family]
    subject = build(family)
    given, before = inputs_of(subject), deepcopy(subject.model.state_dict())
    whole = logits(subject.model, given)
    expected = logits(by_hand(subject, heads, places), given)
    assert (expected - whole).abs().max() > 0.01

    with attlas.prune(subject, heads) as switched_off:
        assert switched_off is subject
        assert_close(logits(subject.model, given), expected)
    smaller = attlas.prune(subject, heads, permanently=True)
    assert_close(logits(smaller.model, given), expected)
    assert subject.model.num_parameters() - smaller.model.num_parameters() == lost
    left = {site.name: site.heads - len(heads.get(site.name, ())) for site in subject.sites}
    assert {site.name: site.heads for site in smaller.sites} == left

    assert all(torch.equal(each, before[name]) for name, each in subject.model.state_dict().items())
    assert torch.equal(logits(subject.model, given), whole)

    loaded = attlas.load(save(smaller, tmp_path), device="cpu")
    assert type(loaded.model) is type(subject.model)
    assert_close(logits(loaded.model, given), expected)
    with pytest.raises(RuntimeError, match="mismatch"):
        type(smaller.model).from_pretrained(tmp_path)


def test_what_was_pruned_can_be_pruned_again(tmp_path):
    _, _, places, _ = FAMILIES["bert"]
    subject = build("bert")
    once = attlas.prune(subject, {"encoder.0": [1], "encoder.1": [0]}, permanently=True)
    twice = attlas.prune(once, {"encoder.0": [0, 2]}, permanently=True)  # 0 and 3 of the whole
    given = inputs_of(subject)
    expected = by_hand(subject, {"encoder.0": [0, 1, 3], "encoder.1": [0]}, places)
    loaded = attlas.load(save(twice, tmp_path), device="cpu")
    for model in (twice.model, loaded.model):
        assert_close(logits(model, given), logits(expected, given))


def test_t5_can_be_pruned_again():
    _, _, places, _ = FAMILIES["t5"]
    subject = build("t5")
    first = attlas.prune(subject, {"encoder.0": [1], "encoder.1": [1]}, permanently=True)
    second = attlas.prune(first, {"encoder.1": [2]}, permanently=True)
    third = attlas.prune(second, {"encoder.0": [0]}, permanently=True)
    given = inputs_of(subject)
    expected = by_hand(subject, {"encoder.0": [0, 1], "encoder.1": [1, 3]}, places)
    assert_close(logits(third.model, given), logits(expected, given))


@pytest.mark.parametrize("family", ["gpt2", "t5"])
def test_a_smaller_model_writes_what_the_whole_one_writes_without_the_heads(family):
    subject, heads = build(family), FAMILIES[family][1]
    smaller = attlas.prune(subject, heads, permanently=True)
    given = {name: each for name, each in inputs_of(subject).items() if "decoder" not in name}
    asked = {"max_new_tokens": 5, "do_sample": False}
    with attlas.prune(subject, heads):
        expected = subject.model.generate(**given, **asked)
    assert torch.equal(smaller.model.generate(**given, **asked), expected)


def test_methods_run_on_what_is_left():
    subject = build("bert")
    smaller = attlas.prune(subject, ENCODER, permanently=True)
    for method in ("raw_attention", "gradient_attention", "attattr"):
        explained = attlas.explain(smaller, LONG, method=method)
        assert np.isfinite(explained.scores).all() and explained.scores.any()
    with attlas.prune(subject, ENCODER):
        whole = subject.attention(LONG)
    left = smaller.attention(LONG)
    for site in left.sites:
        kept = [head for head in range(4) if head not in ENCODER[site.name]]
        np.testing.assert_allclose(left[site.name], whole[site.name][kept], atol=1e-6)
        assert not np.any(whole[site.name][ENCODER[site.name]])


@pytest.mark.parametrize("family", ["bert", "llama"])
def test_what_branches_inside_a_block_sees_no_more_of_the_heads(family):
    subject, heads = build(family), FAMILIES[family][1]
    smaller = attlas.prune(subject, heads, permanently=True)
    expected = attlas.explain(smaller, LONG, method="attattr", target=1)
    with attlas.prune(subject, heads):
        inside = attlas.explain(subject, LONG, method="attattr", target=1)
    largest = np.abs(expected.scores).max()
    np.testing.assert_allclose(inside.scores, expected.scores, atol=1e-4 * largest)


def test_blocks_nest():
    subject = build("bert")
    given = inputs_of(subject)
    expected = by_hand(subject, ENCODER, FAMILIES["bert"][2])
    with attlas.prune(subject, {"encoder.0": [0, 2]}), attlas.prune(subject, {"encoder.1": 3}):
        assert_close(logits(subject.model, given), logits(expected, given))


def test_all_heads_of_a_layer_can_be_switched_off():
    subject = build("bert")
    given, heads = inputs_of(subject), {"encoder.1": range(4)}
    expected = by_hand(subject, heads, FAMILIES["bert"][2])
    with attlas.prune(subject, heads):
        assert_close(logits(subject.model, given), logits(expected, given))
    with pytest.raises(UsageError, match=r"all 4 heads of encoder\.1"):
        attlas.prune(subject, heads, permanently=True)


def test_heads_may_be_named_in_several_ways():
    subject = build("bert")
    ways = [
        {"encoder.0": [1, -1]},
        {("encoder", 0): np.array([1, 3])},
        {subject.sites[0]: (3, 1, 1)},
        [("encoder.0", 1), (("encoder", 0), 3)],
    ]
    seen = []
    for heads in ways:
        with attlas.prune(subject, heads):
            seen.append(subject.predict(SHORT)["probability"].item())
    assert len(set(seen)) == 1 and seen[0] != subject.predict(SHORT)["probability"].item()


def test_pruning_nothing_changes_nothing():
    subject = build("bert")
    with attlas.prune(subject, []):
        inside = subject.predict(LONG)
    same = attlas.prune(subject, {}, permanently=True)
    assert inside.equals(subject.predict(LONG)) and same.predict(LONG).equals(inside)


@pytest.mark.parametrize(
    ("heads", "message"),
    [
        ({"encoder.7": [0]}, r"unknown site 'encoder\.7'.*allowed: encoder\.0, encoder\.1"),
        ([(("decoder", 0), 1)], r"unknown site 'decoder\.0'"),
        ({"encoder.0": [4]}, r"unknown head 4 at encoder\.0: it has 0 to 3"),
        ({"encoder.0": ["first"]}, "a head is a number, not 'first'"),
        (["encoder.0"], "pairs of a site and a head"),
    ],
)
def test_what_is_not_there_is_said(heads, message):
    subject = build("bert")
    with pytest.raises(UsageError, match=message):
        attlas.prune(subject, heads)


def test_heads_that_share_their_keys_and_values_go_together():
    with pytest.raises(UsageError, match=r"heads 2 .* with 3: .*the groups are 0, 1; 2, 3"):
        attlas.prune(build("llama"), {"decoder.0": [0, 1, 2]}, permanently=True)


def test_layers_that_are_one_set_of_weights_lose_heads_alike():
    subject = small("Albert", CLASSIFIES, **tiny.BERT_SHAPE, embedding_size=16)
    with pytest.raises(UsageError, match=r"encoder\.0, encoder\.1 share their weights"):
        attlas.prune(subject, {"encoder.0": [1]}, permanently=True)
    heads = {"encoder.0": [1], "encoder.1": [1]}
    smaller, given = attlas.prune(subject, heads, permanently=True), inputs_of(subject)
    assert subject.model.num_parameters() - smaller.model.num_parameters() == WITH_BIAS
    with attlas.prune(subject, heads):
        assert_close(logits(smaller.model, given), logits(subject.model, given))


@pytest.mark.parametrize(
    ("family", "settings", "message"),
    [
        ("GPTNeoX", tiny.TOWER, r"GPTNeoXAttention: its modules \(query_key_value, dense\)"),
        ("Olmo2", tiny.LLAMA_SHAPE, "does not run without these heads"),  # a norm over all heads
    ],
)
def test_a_family_whose_heads_cannot_be_removed_is_refused_and_can_be_switched_off(
    family, settings, message
):
    subject = small(family, "ForCausalLM", "bpe", **settings)
    heads = {"decoder.0": [0, 1]}
    with pytest.raises(UnsupportedModelError, match=message):
        attlas.prune(subject, heads, permanently=True)
    before = subject.predict(SHORT)
    with attlas.prune(subject, heads):
        assert not subject.predict(SHORT).equals(before)


def test_a_model_that_is_open_is_not_copied():
    subject = build("bert")
    with (
        attlas.prune(subject, ENCODER),
        pytest.raises(UsageError, match="changed by an open with block"),
    ):
        attlas.prune(subject, ENCODER, permanently=True)
