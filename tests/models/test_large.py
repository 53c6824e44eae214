"""Models that do not fit: offloaded to disk, in half precision, of many layers, quantised."""

import gc
import shutil
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
import tiny
import torch
from tiny import build

import attlas
from attlas.errors import AttlasError, ModelError, UnknownNameError, UnsupportedModelError
from attlas.methods import METHODS
from attlas.models.facts.evaluation_mode import evaluation_mode
from attlas.models.facts.fingerprint import fingerprint
from attlas.models.intervening.attention_copy import copy_of
from attlas.models.loading import placement
from attlas.models.loading.offloading import (
    check_changeable,
    is_offloaded,
    offloaded_modules,
    refuse_offloaded_bits,
)

TEXT = "a great film and a bad one"
NAMES = [method.name for method in METHODS]


def save_llama(folder, layers, width=32):
    """A Llama of grouped heads, in shards."""
    _, tokenizer = tiny.subject_parts("causal lm")
    settings = {
        **{"vocab_size": len(tokenizer), "hidden_size": width, "intermediate_size": 2 * width},
        **{"num_hidden_layers": layers, "num_attention_heads": 4, "num_key_value_heads": 2},
        **tiny.SPECIAL_IDS,
    }
    model = build("Llama", "ForCausalLM", settings, spread=0.3 if layers < 10 else 0.08)
    model.save_pretrained(folder, max_shard_size="40KB")
    tokenizer.save_pretrained(folder)
    return model


def bytes_of(model):
    return sum(each.numel() * each.element_size() for each in model.parameters())


def offload(folder, whole, share=0.5, **more):
    """The same model where only a part of it has room."""
    return attlas.load(
        folder,
        device_map="auto",
        max_memory={"cpu": int(share * bytes_of(whole.model))},
        offload_folder=folder / "offloaded",
        **more,
    )


@pytest.fixture(scope="module")
def pairs(tmp_path_factory):
    """A model that reads and one that writes, each whole and offloaded, by name."""
    reader, tokenizer = tiny.subject_parts("sequence classification")
    folders = {name: tmp_path_factory.mktemp(name) for name in ("bert", "llama")}
    reader.save_pretrained(folders["bert"], max_shard_size="20KB")
    tokenizer.save_pretrained(folders["bert"])
    save_llama(folders["llama"], 6)
    found = {}
    for name, folder in folders.items():
        whole = attlas.load(folder)
        found[name] = whole, offload(folder, whole), folder
    return found


@pytest.fixture(params=["bert", "llama"])
def pair(request, pairs):
    whole, spread, _ = pairs[request.param]
    return whole, spread


def state(model):
    """What is visible of a model: hooks, forwards, and its parameters."""
    return {
        name: (
            list(module._forward_hooks),
            list(module._forward_pre_hooks),
            vars(module).get("forward"),
            vars(module).get("_hf_hook"),
            module.training,
            [
                (each, str(p.device), p.requires_grad)
                for each, p in module._parameters.items()
                if p is not None
            ],
        )
        for name, module in model.named_modules()
    }


@pytest.mark.parametrize("method", NAMES)
def test_every_method_gives_the_scores_of_the_whole_model(pair, method):
    whole, spread = pair
    assert is_offloaded(spread.model) and not is_offloaded(whole.model)
    before = state(spread.model)
    expected, found = (attlas.explain(each, TEXT, method).scores for each in (whole, spread))
    np.testing.assert_allclose(found, expected, atol=1e-5)
    assert state(spread.model) == before


def test_what_it_writes_is_explained_alike(pairs):
    whole, spread, _ = pairs["llama"]
    expected, found = (
        attlas.explain_generation(each, TEXT, max_new_tokens=3) for each in (whole, spread)
    )
    np.testing.assert_allclose(found.scores, expected.scores, atol=1e-5)


def test_the_check_passes(pair):
    result = attlas.check(pair[1])
    assert result.passed and not any(result.methods.values())


def test_a_tied_weight_is_found_where_all_weights_are_written_anew(tmp_path):
    model = save_llama(tmp_path / "whole", 2)
    model.config.tie_word_embeddings = True
    model.tie_weights()
    model.save_pretrained(tmp_path / "whole")
    shutil.copytree(
        tmp_path / "whole", tmp_path / "pickled", ignore=shutil.ignore_patterns("model*.safe*")
    )
    weights = {k: v for k, v in model.state_dict().items() if k != "lm_head.weight"}
    torch.save(weights, tmp_path / "pickled" / "pytorch_model.bin")
    whole = attlas.load(tmp_path / "whole")
    spread = offload(tmp_path / "pickled", whole, 1e-3, unsafe_weights=True)
    assert is_offloaded(spread.model) and spread.model.lm_head.weight.is_meta
    expected, found = (attlas.explain(each, TEXT, "gradient").scores for each in (whole, spread))
    np.testing.assert_allclose(found, expected, atol=1e-5)


@pytest.mark.parametrize("layers", [30, 80])
def test_many_layers(tmp_path, layers):
    save_llama(tmp_path, layers, width=16)
    whole = attlas.load(tmp_path)
    spread = offload(tmp_path, whole, 0.2)
    for method in ("attention_rollout", "generic_relevance", "gradient", "leave_one_out"):
        expected, found = (attlas.explain(each, TEXT, method).scores for each in (whole, spread))
        np.testing.assert_allclose(found, expected, atol=1e-5)


def brought(model):
    """The weights in memory that no module of the model holds."""
    own = {id(each) for each in model.parameters()}
    gc.collect()
    return [
        each
        for each in gc.get_objects()
        if type(each) is torch.nn.Parameter and not each.is_meta and id(each) not in own
    ]


def test_a_graph_holds_no_offloaded_weight(pairs):
    spread = pairs["llama"][1]
    inputs = spread.encode(TEXT)
    count = len(brought(spread.model))
    with evaluation_mode(spread.model), torch.enable_grad(), spread.tap(gradients=True) as seen:
        total = spread.run(inputs.arguments).sum()
        assert len(brought(spread.model)) == count
        gradients = torch.autograd.grad(total, seen.weights)
    assert all(gradient.any() for gradient in gradients)


def test_a_pass_that_fails_leaves_no_weight_behind(pairs):
    spread = pairs["llama"][1]
    before = state(spread.model)
    inside = spread.model.model.layers[4].mlp.down_proj

    def fail(*_):
        raise KeyboardInterrupt

    handle = inside.register_forward_hook(fail)
    old, inside._old_forward = inside._old_forward, fail
    try:
        with pytest.raises(KeyboardInterrupt):
            attlas.explain(spread, TEXT, "gradient")
    finally:
        handle.remove()
        inside._old_forward = old
    assert state(spread.model) == before
    assert all(
        w.is_meta
        for each in offloaded_modules(list(spread.model.modules()))
        for w in each.module._parameters.values()
        if w is not None
    )


def test_offloaded_weights_count_in_the_fingerprint(pair):
    whole, spread = pair
    assert fingerprint(spread.model) == fingerprint(whole.model)
    other = offloaded_modules(list(spread.model.modules()))[-1]
    name = next(other.names())
    kept = other.hook.weights_map
    other.hook.weights_map = {**{each: kept[each] for each in other.names()}, name: kept[name] + 1}
    try:
        assert fingerprint(spread.model) != fingerprint(whole.model)
    finally:
        other.hook.weights_map = kept


def test_what_changes_weights_is_refused_in_one_line(pairs):
    spread = pairs["bert"][1]
    with pytest.raises(UnsupportedModelError, match=r"^pruning needs all weights in memory"):
        attlas.prune(spread, {"encoder.0": [0]}, permanently=True)
    judged = attlas.judge(spread, attlas.explain(spread, TEXT, "gradient"), ["randomisation"])
    (told,) = [each["note"] for each in judged.to_dict()["measured"]]
    assert told.startswith("not applicable: drawing weights anew needs all weights in memory")
    with pytest.raises(AttlasError, match="needs all weights in memory"):
        copy_of(spread)


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_half_precision_offloaded_is_half_precision_whole(pairs, dtype):
    folder = pairs["llama"][2]
    whole = attlas.load(folder, dtype=dtype)
    spread = attlas.load(
        folder,
        dtype=dtype,
        device_map="auto",
        max_memory={"cpu": bytes_of(whole.model) // 2},
        offload_folder=folder / "half",
    )
    assert is_offloaded(spread.model) and spread.dtype == getattr(torch, dtype)
    for method in ("attention_rollout", "gradient"):
        expected, found = (attlas.explain(each, TEXT, method).scores for each in (whole, spread))
        np.testing.assert_allclose(found, expected, atol=1e-5)


def test_a_method_that_stays_on_one_device_says_so(pairs, monkeypatch):
    said = "Expected all tensors to be on the same device, but found at least two\n, cpu and cuda:0"

    def fail(*_, **__):
        raise RuntimeError(said)

    method = replace(METHODS["alti"], score_tokens=fail)
    question = pairs["bert"][0].ask([TEXT])[0]
    with pytest.raises(UnsupportedModelError, match=r"^alti does not run on a model that is on"):
        method.score(question, {})
    said = "another problem"
    with pytest.raises(RuntimeError, match="another problem"):
        method.score(question, {})


def test_placements_that_cannot_be(pairs, monkeypatch):
    folder = pairs["bert"][2]
    wrong = [
        ({"device_map": "atuo"}, UnknownNameError, "did you mean 'auto'"),
        ({"device_map": "auto", "device": "cpu"}, AttlasError, "not both"),
        ({"max_memory": {"cpu": "2GB"}}, AttlasError, "device_map='auto'"),
        ({"device_map": "auto", "max_memory": {"cpu": "much"}}, AttlasError, "such as 2GB"),
        ({"device_map": "auto", "max_memory": {"cpu": True}}, AttlasError, "such as 2GB"),
        ({"device_map": []}, AttlasError, r"the place of each module, not \[\]"),
        ({"device_map": True}, AttlasError, "the place of each module, not True"),
        ({"device_map": {}}, AttlasError, "gives no module a place"),
        ({"quantization_config": 8}, AttlasError, "a configuration of transformers, not 8"),
        ({"quantization_config": "int7"}, UnknownNameError, "allowed: int8, int4"),
    ]
    for given, kind, said in wrong:
        with pytest.raises(kind, match=said) as caught:
            attlas.load(folder, **given)
        assert "\n" not in str(caught.value)
    monkeypatch.setattr(placement, "find_spec", lambda name: None)
    for given, package in [
        ({"device_map": "auto"}, "accelerate"),
        ({"quantization_config": "int8"}, "torchao"),
        ({"quantization_config": "int4"}, "bitsandbytes"),
    ]:
        with pytest.raises(ModelError, match=f"needs the package {package}"):
            attlas.load(folder, **given)


def test_the_words_become_those_of_transformers():
    placed = placement.placement("auto", {"cuda:1": "2GB", "cpu": "4GB", 0: 7}, "here", None, "cpu")
    assert placed == {
        **{"device_map": "auto", "max_memory": {1: "2GB", "cpu": "4GB", 0: 7}},
        "offload_folder": "here",
    }
    asked = SimpleNamespace()
    placed = placement.placement(None, None, None, asked, "cuda:1")
    assert placed == {"quantization_config": asked, "device_map": {"": "cuda:1"}}


def test_four_bits_are_the_model_of_the_rounded_weights(tmp_path):
    functional = pytest.importorskip("bitsandbytes").functional
    save_llama(tmp_path, 3, width=128)
    small, plain = attlas.load(tmp_path, quantization_config="int4"), attlas.load(tmp_path)
    weights = fingerprint(small.model)
    with torch.no_grad():
        for name, weight in small.model.named_parameters():
            if hasattr(weight, "quant_state"):
                rounded = functional.dequantize_4bit(weight.data, weight.quant_state)
                plain.model.get_parameter(name).copy_(rounded)
    refused = set()
    for method in NAMES:
        expected = attlas.explain(plain, TEXT, method).scores
        try:
            found = attlas.explain(small, TEXT, method).scores
        except UnsupportedModelError as problem:
            assert "its weights are in 4 bits" in str(problem)
            refused.add(method)
            continue
        np.testing.assert_allclose(found, expected, atol=1e-4 * np.abs(expected).max() + 1e-6)
    assert refused == {"alti", "decompx", "globenc", "lrp_relevance"}
    assert fingerprint(small.model) == weights


class Packed(torch.nn.Linear):
    """What a linear map in 4 bits is to who looks: a product that only its library knows."""

    def forward(self, states):
        return Unpacking.apply(states, self.rounded)


class Unpacking(torch.autograd.Function):
    @staticmethod
    def forward(context, states, rounded):
        context.rounded = rounded
        return states @ rounded

    @staticmethod
    def backward(context, gradient):
        return gradient @ context.rounded.T, None


@pytest.mark.parametrize("settings, bits", [({"load_in_4bit": True}, "4 bits"), ({}, "fewer bits")])
def test_a_method_that_refuses_packed_weights_says_what_they_are(tmp_path, settings, bits):
    save_llama(tmp_path, 1)
    subject = attlas.load(tmp_path, device="cpu")
    for module in subject.model.model.modules():
        if type(module) is torch.nn.Linear:
            module.rounded, module.__class__ = module.weight.data.T.clone(), Packed
            shape = (module.weight.numel() // 2, 1)
            packed = torch.zeros(shape, dtype=torch.uint8)
            module.weight = torch.nn.Parameter(packed, requires_grad=False)
    with pytest.raises(UnsupportedModelError) as whole:
        attlas.explain(subject, TEXT, "lrp_relevance")
    assert "bits" not in str(whole.value)
    subject.model.hf_quantizer = SimpleNamespace(quantization_config=SimpleNamespace(**settings))
    with pytest.raises(UnsupportedModelError) as told:
        attlas.explain(subject, TEXT, "lrp_relevance")
    reason = f"; its weights are in {bits}, which may be why: load it without quantization_config"
    assert str(told.value) == f"{whole.value}{reason}"


@pytest.mark.parametrize("word, package", [*placement.QUANTISERS.items()])
def test_fewer_bits_are_not_offloaded(tmp_path, word, package):
    pytest.importorskip(package)
    save_llama(tmp_path, 3, width=128)
    for limit in (100, 200, 400):
        with pytest.raises(ModelError) as caught:
            attlas.load(
                tmp_path,
                quantization_config=word,
                device_map="auto",
                max_memory={"cpu": f"{limit}KB"},
                offload_folder=tmp_path / "offloaded",
            )
        assert "\n" not in str(caught.value)


def test_eight_bits_are_the_model_of_the_rounded_weights(tmp_path):
    pytest.importorskip("torchao")
    save_llama(tmp_path, 3, width=128)
    small, plain = attlas.load(tmp_path, quantization_config="int8"), attlas.load(tmp_path)
    with torch.no_grad():
        for name, weight in small.model.named_parameters():
            if hasattr(weight, "dequantize") and type(weight) is not torch.nn.Parameter:
                plain.model.get_parameter(name).copy_(weight.dequantize())
    assert len(fingerprint(small.model)) == 64
    for method in NAMES:
        expected, found = (attlas.explain(each, TEXT, method).scores for each in (plain, small))
        np.testing.assert_allclose(found, expected, atol=1e-4 * np.abs(expected).max() + 1e-6)
    with pytest.raises(UnsupportedModelError, match="quantised"):
        attlas.prune(small, {"decoder.0": [0]}, permanently=True)


def test_a_gguf_file_that_was_unpacked_is_a_model_of_plain_numbers(tmp_path):
    save_llama(tmp_path, 2)
    whole = attlas.load(tmp_path)
    model, elsewhere = whole.model, offload(tmp_path, whole).model
    for each in (model, elsewhere):  # as transformers leaves them where it has no kernel
        each.hf_quantizer = SimpleNamespace(packed_modules={})
    check_changeable(model, "this")
    refuse_offloaded_bits(elsewhere)
    model.hf_quantizer = SimpleNamespace(packed_modules={"model.layers.0": None})
    with pytest.raises(UnsupportedModelError, match="quantised"):
        check_changeable(model, "this")
