"""Value zeroing against a plain loop: a hook zeroes one value vector, and the block is read.

The whole model is run each time. Below the layer nothing changes, so its block has the input that
it had; above it nothing is looked at.
"""

from functools import cache

import numpy as np
import pytest
import torch
from subjects import ASKED, TEXTS, arguments, plain, small, subject
from tiny import BERT_SHAPE, LLAMA_SHAPE, tokenizer, widen
from torch.utils._python_dispatch import TorchDispatchMode
from transformers import Gemma4ForCausalLM, Gemma4TextConfig

import attlas
from attlas.errors import UnsupportedModelError, UsageError
from attlas.methods.value_zeroing import compose
from attlas.models.branching import block_runs
from attlas.models.branching.block_runs import cosine_distances

LONG = TEXTS["sequence classification"][0]


@torch.no_grad()
def by_loop(model, given, block, values, keys, part=slice(None)):
    """The cosine distances `[query, key]` of a block's output when one value vector is zero."""
    outputs, zeroed = [], None

    def zero(_module, _arguments, output):
        if zeroed is None:
            return output
        changed = output.clone()
        changed[:, zeroed, part] = 0
        return changed

    def keep(_module, _arguments, output):
        outputs.append((output if torch.is_tensor(output) else output[0])[0].double())

    handles = [values.register_forward_hook(zero), block.register_forward_hook(keep)]
    for zeroed in [None, *range(keys)]:  # noqa: B007 - read by the hook
        model(**given)
    for handle in handles:
        handle.remove()
    clean, *changed = outputs
    cosines = [torch.cosine_similarity(clean, each, dim=-1) for each in changed]
    return 1 - torch.stack(cosines, dim=1)


def shares(distances):
    return distances / distances.sum(dim=-1, keepdim=True)


@cache
def bert_layers():
    task = "sequence classification"
    model, given = plain(task), arguments(task, LONG)
    keys = given["input_ids"].shape[1]
    return [
        shares(by_loop(model, given, layer, layer.attention.self.value, keys))
        for layer in model.bert.encoder.layer
    ]


def test_bert():
    first, second = bert_layers()
    found = attlas.explain(subject("sequence classification"), LONG, "value_zeroing")
    np.testing.assert_allclose(found.scores, (second @ first)[0], rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(found.maps.weights[0][0], second @ first, rtol=1e-4, atol=1e-5)
    assert found.scores.sum() == pytest.approx(1, abs=1e-5)
    assert [site.kind for site in found.maps.sites] == ["all"]


@pytest.mark.parametrize("layer", [0, 1, -1, -2])
def test_one_layer(layer):
    expected = bert_layers()[layer]
    found = attlas.explain(subject("sequence classification"), LONG, "value_zeroing", layer=layer)
    np.testing.assert_allclose(found.scores, expected[0], rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(found.maps.weights[0][0], expected, rtol=1e-4, atol=1e-5)


def test_gpt2_looks_back():
    task = "causal lm"
    model, given = plain(task), arguments(task, LONG)
    keys, width = given["input_ids"].shape[1], 32
    first, second = (
        shares(by_loop(model, given, block, block.attn.c_attn, keys, slice(2 * width, None)))
        for block in model.transformer.h
    )
    found = attlas.explain(subject(task), LONG, "value_zeroing")
    np.testing.assert_allclose(found.scores, (second @ first)[-1], rtol=1e-4, atol=1e-5)
    assert np.abs(np.triu(found.maps.weights[0][0], 1)).max() < 1e-12


def test_an_encoder_decoder_shares_out_between_both_streams():
    task, text = "sequence to sequence", TEXTS["sequence to sequence"][0]
    model, given = plain(task), arguments(task, text, ASKED[task]["prefix"])
    source, prefix = given["input_ids"].shape[1], given["decoder_input_ids"].shape[1]
    mixing = torch.eye(source).double()
    for block in model.encoder.block:
        values = block.layer[0].SelfAttention.v
        mixing = shares(by_loop(model, given, block, values, source)) @ mixing
    held = torch.cat([torch.zeros(prefix, source), torch.eye(prefix)], dim=1).double()
    for block in model.decoder.block:
        own = by_loop(model, given, block, block.layer[0].SelfAttention.v, prefix)
        across = by_loop(model, given, block, block.layer[1].EncDecAttention.v, source)
        both = shares(torch.cat([across, own], dim=1))
        across, own = both[:, :source], both[:, source:]
        held = own @ held
        held[:, :source] += across @ mixing
    found = attlas.explain(subject(task), text, "value_zeroing", **ASKED[task])
    np.testing.assert_allclose(found.maps.weights[0][0], held, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(found.scores, held[-1], rtol=1e-4, atol=1e-5)
    last = attlas.explain(subject(task), text, "value_zeroing", layer=-1, **ASKED[task])
    np.testing.assert_allclose(last.scores, both[-1], rtol=1e-4, atol=1e-5)


def test_grouped_heads_lose_their_value_together():
    llama = small("Llama", "ForCausalLM", "bpe", **LLAMA_SHAPE)
    found = attlas.explain(llama, LONG, "value_zeroing", layer=0)
    given = {"input_ids": torch.tensor([llama.tokenizer(LONG)["input_ids"]])}
    block = llama.model.model.layers[0]
    keys = given["input_ids"].shape[1]
    expected = shares(by_loop(llama.model, given, block, block.self_attn.v_proj, keys))
    np.testing.assert_allclose(found.scores, expected[-1], rtol=1e-3, atol=1e-5)


def test_a_family_that_writes_its_attention_out():
    mpnet = small("MPNet", "ForSequenceClassification", **BERT_SHAPE)
    found = attlas.explain(mpnet, LONG, "value_zeroing", layer=0)
    given = {"input_ids": torch.tensor([mpnet.tokenizer(LONG)["input_ids"]])}
    block = mpnet.model.mpnet.encoder.layer[0]
    keys = given["input_ids"].shape[1]
    expected = shares(by_loop(mpnet.model, given, block, block.attention.attn.v, keys))
    np.testing.assert_allclose(found.scores, expected[0], rtol=1e-3, atol=1e-5)


@pytest.mark.parametrize(
    "bound",
    [("rows_of", lambda device, tokens: 1), ("ATTENTION_BYTES", 1)],
    ids=lambda each: each[0],
)
def test_one_copy_at_a_time_gives_the_same(bound, monkeypatch):
    task = "sequence to sequence"
    whole = attlas.explain(subject(task), TEXTS[task], "value_zeroing", **ASKED[task])
    monkeypatch.setattr(block_runs, *bound)
    alone = attlas.explain(subject(task), TEXTS[task], "value_zeroing", **ASKED[task])
    for first, second in zip(whole, alone, strict=True):
        np.testing.assert_allclose(first.scores, second.scores, rtol=1e-4, atol=1e-6)


def test_distances_worked_by_hand():
    clean = torch.tensor([[3.0, 0.0], [1.0, 1.0], [1.0, 0.0]])
    changed = torch.tensor([[0.0, 2.0], [2.0, 2.0], [-1.0, 0.0]])
    torch.testing.assert_close(
        cosine_distances(clean, changed), torch.tensor([1.0, 0.0, 2.0]).double()
    )
    turned = torch.tensor([[np.cos(1e-5), np.sin(1e-5)]])
    found = cosine_distances(torch.tensor([[1.0, 0.0]]).double(), turned)
    assert float(found) == pytest.approx(5e-11, rel=1e-3)


def test_a_decoder_over_an_encoder_without_attention():
    own, across = torch.tensor([[[0.5]]]).double(), torch.tensor([[[0.2, 0.3]]]).double()
    torch.testing.assert_close(compose([(own, across)]), torch.tensor([[[0.2, 0.3, 0.5]]]))
    twice = compose([(own, across), (own, across)])
    torch.testing.assert_close(twice, torch.tensor([[[0.3, 0.45, 0.25]]]))


@pytest.mark.parametrize("layer", [2, -3])
def test_unknown_layer(layer):
    with pytest.raises(UsageError, match=f"unknown layer {layer}: this model has layers 0 to 1"):
        attlas.explain(subject("causal lm"), "a cat", "value_zeroing", layer=layer)


def test_a_stack_that_drops_positions_is_refused():
    funnel = small(
        "Funnel",
        "ForSequenceClassification",
        **{"block_sizes": [1, 2], "d_model": 32, "n_head": 4, "d_head": 8, "d_inner": 64},
    )
    with pytest.raises(UnsupportedModelError):
        attlas.explain(funnel, LONG, "value_zeroing")


GEMMA4 = {
    **LLAMA_SHAPE,
    **{"head_dim": 8, "num_hidden_layers": 4, "num_kv_shared_layers": 2, "per_layer_config": {}},
    **{"layer_types": ["sliding_attention", "full_attention"] * 2, "sliding_window": 64},
    **{"hidden_size_per_layer_input": 8, "vocab_size_per_layer_input": 600},
}


@torch.no_grad()
def test_a_layer_that_shares_the_values_of_another():
    """In the loop, the values that the last layer takes over lose one token at a time."""
    words = tokenizer("bpe")
    config = Gemma4TextConfig(**GEMMA4, vocab_size=len(words), pad_token_id=0)
    torch.manual_seed(0)
    model = Gemma4ForCausalLM(config).eval()
    widen(model, 0.3)
    given = words("the cat sat", return_tensors="pt")
    last, outputs = model.model.layers[-1], []

    def zero(_module, args, kwargs):
        keys, values = kwargs["shared_kv_states"]["full_attention"]
        changed = values.clone()
        changed[:, :, zeroed] = 0
        return args, {**kwargs, "shared_kv_states": {"full_attention": (keys, changed)}}

    def keep(_module, _arguments, output):
        outputs.append(output[0].double())

    last.register_forward_hook(keep)
    model(**given)
    handle = last.register_forward_pre_hook(zero, with_kwargs=True)
    for zeroed in range(given["input_ids"].shape[1]):  # noqa: B007 - read by the hook
        model(**given)
    handle.remove()
    clean, *changed = outputs
    far = 1 - torch.stack([torch.cosine_similarity(clean, each, dim=-1) for each in changed], 1)
    subject = attlas.Subject(model, words)
    attlas.explain(subject, "the cat sat", "value_zeroing")  # the product of all layers
    found = attlas.explain(subject, "the cat sat", "value_zeroing", layer=-1)
    np.testing.assert_allclose(found.scores, shares(far)[-1].numpy(), atol=1e-5)


class Attended(TorchDispatchMode):
    """Notes the batch of every softmax."""

    def __init__(self):
        super().__init__()
        self.batches = []

    def __torch_dispatch__(self, operator, types, args=(), kwargs=None):
        if operator.overloadpacket.__name__ == "_softmax" and args[0].ndim == 4:
            self.batches.append(len(args[0]))
        return operator(*args, **(kwargs or {}))


@pytest.mark.parametrize("task", ["sequence classification", "causal lm"])
def test_copies_attend_once_for_all(task):
    attlas.explain(subject(task), LONG, "value_zeroing")  # what the model is like is known now
    with Attended() as seen:
        attlas.explain(subject(task), LONG, "value_zeroing")
    assert seen.batches and set(seen.batches) == {1}


def test_an_edit_around_holds_for_every_copy():
    task = "sequence classification"
    asked = subject(task)
    with asked.tap(attlas.edits.zero(2)):
        found = attlas.explain(asked, LONG, "value_zeroing", layer=0, maps=True).maps.weights[0][0]
    assert (found[:, 2] < 1e-9).all() and (found[:, 3] > 1e-9).all()
