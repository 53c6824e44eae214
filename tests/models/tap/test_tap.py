"""The tap, held against what transformers itself computes on eager attention."""

import copy
import gc
import threading
import weakref
from collections import Counter

import pytest
import tiny
import torch
from torch import nn

from attlas.errors import UnsupportedModelError, UsageError
from attlas.models.facts import transformers_internals as internals
from attlas.models.tap import edits
from attlas.models.tap.opening import tap

FAMILIES = {**tiny.FAMILIES, **tiny.SECOND_ROAD}


def run(case):
    with torch.no_grad():
        output = case.model(**case.inputs)
    return output.logits_per_image if hasattr(output, "logits_per_image") else output.logits


def eager(case):
    with internals.implementation(internals.configurations(case.model), "eager"):
        return run(case)


def eager_maps(case):
    """The maps that transformers returns by itself: encoder, decoder, cross, vision."""
    fields = ("attentions", "encoder_attentions", "decoder_attentions", "cross_attentions")
    with internals.implementation(internals.configurations(case.model), "eager"), torch.no_grad():
        output = case.model(**case.inputs, output_attentions=True)
    parts = [output]
    if hasattr(output, "vision_model_output"):
        parts = [output.text_model_output, output.vision_model_output]
    return [each for part in parts for name in fields for each in (part.get(name) or ())]


def came_with(case):
    return internals.implementations(internals.configurations(case.model))


def hooks(model):
    return [
        (name, len(module._forward_hooks), len(module._forward_pre_hooks))
        for name, module in model.named_modules()
    ]


@pytest.fixture(params=FAMILIES)
def case(request):
    return FAMILIES[request.param]()


def test_the_open_model_computes_what_eager_computes(case):
    with tap(case.model) as seen:
        opened = run(case)
    assert torch.equal(opened, eager(case))
    assert Counter(site.kind for site in seen.sites) == case.kinds


def test_the_closed_model_computes_what_it_did_before(case):
    before, implementations = run(case), came_with(case)
    hooked = hooks(case.model)
    with tap(case.model, [edits.uniform()]):
        run(case)
    assert torch.equal(run(case), before)
    assert came_with(case) == implementations
    assert hooks(case.model) == hooked


def test_what_is_read_is_what_the_model_used(case):
    with tap(case.model) as seen:
        run(case)
    order = {kind: number for number, kind in enumerate(("encoder", "decoder", "cross", "vision"))}
    read = sorted(seen.calls, key=lambda call: (order[call.site.kind], call.site.layer))
    expected = eager_maps(case)
    assert len(read) == len(expected) == case.sites
    for call, weights in zip(read, expected, strict=True):
        assert torch.equal(call.weights, weights)
        assert call.site.heads == weights.shape[1]
        assert not call.weights[~call.visible.expand_as(call.weights)].any()


def test_an_edit_that_changes_nothing_changes_nothing(case):
    with tap(case.model, [edits.apply(torch.clone)]):
        edited = run(case)
    assert torch.equal(edited, eager(case))


def test_an_edit_that_changes_the_attention_changes_the_output(case):
    for edit in (edits.uniform(), edits.permute()):
        with tap(case.model, [edit]):
            edited = run(case)
        assert (edited - eager(case)).abs().max() > 1e-4


def test_gradients_reach_every_site(case):
    for parameter in case.model.parameters():
        parameter.requires_grad_(False)
    with tap(case.model, gradients=True) as seen:
        output = case.model(**case.inputs)
        logits = output.logits_per_image if hasattr(output, "logits_per_image") else output.logits
        gradients = torch.autograd.grad(logits.square().sum(), seen.weights)
    assert all(gradient.isfinite().all() and gradient.any() for gradient in gradients)


@pytest.fixture
def bert():
    return tiny.FAMILIES["bert"]()


def test_everything_is_put_back_after_an_exception(bert):
    before, implementations, hooked = run(bert), came_with(bert), hooks(bert.model)

    def broken(weights):
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError), tap(bert.model, [edits.apply(broken)]):
        run(bert)
    with pytest.raises(KeyboardInterrupt), tap(bert.model):
        raise KeyboardInterrupt
    assert came_with(bert) == implementations
    assert hooks(bert.model) == hooked
    assert torch.equal(run(bert), before)


def test_every_sub_configuration_gets_its_own_back():
    clip = tiny.FAMILIES["clip"]()
    config = clip.model.config
    config.text_config._attn_implementation_internal = "eager"
    config.vision_config._attn_implementation_internal = "sdpa"
    with tap(clip.model):
        assert config.text_config._attn_implementation == internals.IMPLEMENTATION
    assert config.text_config._attn_implementation == "eager"
    assert config.vision_config._attn_implementation == "sdpa"


def test_taps_nest(bert):
    with tap(bert.model) as outer, tap(bert.model, [edits.uniform()]) as inner:
        run(bert)
    with tap(bert.model) as alone:
        run(bert)
    # The outer tap stands nearer the model: at the first layer it sees what was not yet edited.
    assert torch.equal(outer.weights[0], alone.weights[0])
    length = inner.weights[0].shape[-1]
    torch.testing.assert_close(inner.weights[0], torch.full_like(inner.weights[0], 1 / length))


def test_two_taps_of_two_models_do_not_mix(bert):
    other = tiny.FAMILIES["distilbert"]()
    expected = eager(other)
    with tap(bert.model, [edits.uniform()]) as first, tap(other.model) as second:
        assert torch.equal(run(other), expected)
    assert first.calls == [] and len(second.calls) == other.sites


def test_each_forward_is_a_pass_of_its_own(bert):
    with tap(bert.model) as seen:
        run(bert)
        run(bert)
    assert [len(calls) for calls in seen.passes] == [bert.sites, bert.sites]
    assert [call.site for call in seen.passes[0]] == [call.site for call in seen.passes[1]]


def test_generation_is_seen_step_by_step():
    t5 = tiny.FAMILIES["t5"]()
    with tap(t5.model) as seen, torch.no_grad():
        t5.model.generate(input_ids=t5.inputs["input_ids"], max_new_tokens=3, min_new_tokens=3)
    kinds = [Counter(call.site.kind for call in calls) for calls in seen.passes]
    assert kinds == [{"encoder": 2}] + [{"decoder": 2, "cross": 2}] * 3


def test_threads_with_different_edits_do_not_mix(bert):
    def edited_by(factor):
        with tap(bert.model, [edits.scale(factor)]):
            return run(bert)

    expected = {factor: edited_by(factor) for factor in (0.0, 0.5, 1.0)}
    wrong = []
    start = threading.Barrier(3)

    def work(factor):
        start.wait()
        for _ in range(20):
            if not torch.equal(edited_by(factor), expected[factor]):
                wrong.append(factor)

    threads = [threading.Thread(target=work, args=(factor,)) for factor in expected]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


def test_a_thread_that_taps_nothing_sees_no_edit(bert):
    expected, found = run(bert), []
    with tap(bert.model, [edits.uniform()]) as seen:
        thread = threading.Thread(target=lambda: found.append(run(bert)))
        thread.start()
        thread.join()
    assert torch.equal(found[0], expected)
    assert seen.calls == []


def test_a_model_without_attention_is_refused():
    with (
        pytest.raises(UnsupportedModelError, match="modules computes attention"),
        tap(nn.Linear(2, 2)),
    ):
        pass


def test_attention_that_is_not_seen_raises(bert, monkeypatch):
    attention = bert.model.bert.encoder.layer[1].attention.self
    monkeypatch.setattr(attention, "forward", lambda hidden, *_, **__: (hidden, None))
    unseen = pytest.raises(UnsupportedModelError, match=r"layer\.1\.attention\.self")
    with unseen, tap(bert.model):
        run(bert)


def test_a_module_that_mixes_otherwise_can_be_read_but_not_edited(bert, monkeypatch):
    kind = type(bert.model.bert.encoder.layer[0].attention.self)
    own = internals.eager_attention(kind)
    subclass = type("DoublingAttention", (kind,), {})
    for layer in bert.model.bert.encoder.layer:
        layer.attention.self.__class__ = subclass

    def doubling(*arguments, **options):
        output, weights = own(*arguments, **options)
        return 2 * output, weights

    monkeypatch.setattr(internals, "eager_attention", {subclass: doubling}.get)
    with tap(bert.model) as seen:
        run(bert)
    assert len(seen.calls) == bert.sites
    refused = pytest.raises(UnsupportedModelError, match="can be read but not edited")
    with refused, tap(bert.model, [edits.uniform()]):
        run(bert)


def test_a_subclass_in_a_users_file_is_opened(bert):
    kind = type(bert.model.bert.encoder.layer[0].attention.self)

    class Mine(kind):
        def forward(self, *arguments, **options):
            return super().forward(*arguments, **options)

    for layer in bert.model.bert.encoder.layer:
        layer.attention.self.__class__ = Mine
    expected = eager(bert)
    with tap(bert.model) as seen:
        assert torch.equal(run(bert), expected)
    assert len(seen.calls) == bert.sites


def test_an_edit_of_the_wrong_shape_is_refused(bert):
    wrong = edits.apply(lambda weights: weights[..., :1])
    with pytest.raises(UsageError, match=r"encoder\.0"), tap(bert.model, [wrong]):
        run(bert)


def test_a_model_that_is_rebuilt_is_looked_at_again(bert):
    with tap(bert.model) as seen:
        run(bert)
    layers = bert.model.bert.encoder.layer
    bert.model.bert.encoder.layer = torch.nn.ModuleList([*layers, copy.deepcopy(layers[0])])
    expected = eager(bert)
    with tap(bert.model) as again:
        assert torch.equal(run(bert), expected)
    assert len(again.calls) == len(seen.calls) + 1


def test_a_model_that_was_tapped_can_be_forgotten():
    bert = tiny.FAMILIES["bert"]()
    with tap(bert.model):
        run(bert)
    gone = weakref.ref(bert.model)
    del bert
    gc.collect()
    assert gone() is None


def test_values_are_found_where_a_family_mixes_them_by_letters():
    case = FAMILIES["xlnet"]()
    found, given = [], []
    module = case.model.transformer.layer[0].rel_attn
    handle = module.register_forward_pre_hook(lambda _, args: given.append(args[0]))
    with torch.no_grad(), tap(case.model, keep=lambda call: found.append(call) or call):
        case.model(**case.inputs)
    handle.remove()
    expected = torch.einsum("ibh,hnd->bnid", given[0], module.v)
    torch.testing.assert_close(found[0].values, expected)
