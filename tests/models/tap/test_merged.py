"""Attention of one softmax over two streams, held against the softmax computed from its scores."""

import pytest
import tiny
import torch

import attlas
from attlas.errors import UnsupportedModelError
from attlas.models.asking.scores import target_scores
from attlas.models.branching import variants
from attlas.models.branching.branches import Branch, run_branches
from attlas.models.encoding.request import Request
from attlas.models.intervening.ablating import ablating
from attlas.models.intervening.keys import exchanges_columns, read_keys, run_with_keys
from attlas.models.tap import edits
from attlas.models.tap.opening import tap

TEXT, PREFIX = "a warm and funny film", "the plot"
LAYER = 1


@pytest.fixture(scope="module")
def case():
    return tiny.FAMILIES["t5gemma2"]()


@pytest.fixture(scope="module")
def question():
    subject = attlas.Subject(*tiny.merged_subject())
    (asked,) = subject.ask([TEXT], Request(prefix=PREFIX, target=9))
    return asked


def rotated(states, cosine, sine):
    first, second = states.chunk(2, dim=-1)
    turned = torch.cat([-second, first], dim=-1)
    return states * cosine[:, None] + turned * sine[:, None]


def by_definition(module, given):
    """The joint softmax of queries and the keys of both streams, and the values, heads apart."""
    own, other, mask = (
        given[name] for name in ("hidden_states", "encoder_hidden_states", "merged_attention_mask")
    )

    def heads(projection, states):
        apart = projection(states).unflatten(-1, (-1, module.head_dim)).transpose(1, 2)
        return apart.repeat_interleave(4 // apart.shape[1], dim=1)

    position = given["position_embeddings"]
    queries = rotated(module.q_norm(heads(module.q_proj, own)), *position)
    first = rotated(module.k_norm(heads(module.k_proj, own)), *position)
    keys = torch.cat([first, module.k_norm(heads(module.k_proj, other))], dim=2)
    values = torch.cat([heads(module.v_proj, own), heads(module.v_proj, other)], dim=2)
    scores = queries @ keys.mT * module.scaling
    return (scores + mask).softmax(-1), values


def watched(case, *changes):
    """What the decoder's upper attention was handed and gave, and what the tap saw of it."""
    module, held = case.model.get_decoder().layers[LAYER].self_attn, {}

    def note(_, args, kwargs, output):
        held.update(given=kwargs, output=output[0])

    handle = module.register_forward_hook(note, with_kwargs=True)
    with torch.no_grad(), tap(case.model, changes) as seen:
        case.model(**case.inputs)
    handle.remove()
    calls = {call.site.kind: call for call in seen.calls if call.site.layer == LAYER}
    return module, held["given"], held["output"], calls


@torch.no_grad()
def test_two_sites_are_the_parts_of_one_softmax(case):
    module, given, _, calls = watched(case)
    weights, _ = by_definition(module, given)
    own, other = calls["decoder"].weights, calls["cross"].weights
    assert own.shape[2:] == (7, 7) and other.shape[2:] == (7, 12)
    assert torch.allclose(torch.cat([own, other], dim=-1), weights, atol=1e-6)
    assert torch.allclose(own.sum(-1) + other.sum(-1), torch.ones(()), atol=1e-6)
    assert other.sum(-1).min() < 0.9  # neither stream has everything
    causal = torch.ones(7, 7, dtype=torch.bool).tril()
    assert torch.equal(calls["decoder"].visible[0, 0], causal)
    assert calls["cross"].visible.all()


@torch.no_grad()
@pytest.mark.parametrize("kind", ["decoder", "cross"])
def test_an_edit_reaches_one_stream_alone(case, kind):
    module, given, output, calls = watched(case, edits.scale(0.25).at(kind=kind, layer=LAYER))
    weights, values = by_definition(module, given)
    columns = slice(0, 7) if kind == "decoder" else slice(7, None)
    weights[..., columns] *= 0.25
    expected = module.o_proj((weights @ values).transpose(1, 2).flatten(2))
    assert torch.allclose(output, expected, atol=1e-5)
    assert torch.allclose(calls[kind].weights, weights[..., columns], atol=1e-6)


def test_the_gradient_of_each_stream_is_that_of_the_joint_map(case):
    """The slope along a direction, against a small step in that direction."""
    model = case.model
    drawn = torch.Generator().manual_seed(0)
    for kind in ("decoder", "cross"):
        with tap(model, gradients=True) as seen:
            score = model(**case.inputs).logits[0, -1, 9]
            calls = [call for call in seen.calls if call.site.layer == LAYER]
            (call,) = (call for call in calls if call.site.kind == kind)
            (slope,) = torch.autograd.grad(score, [call.weights])
        way = torch.randn(call.weights.shape, generator=drawn)
        ends = []
        for size in (1e-3, -1e-3):
            step = edits.apply(lambda weights, size=size, way=way: weights + size * way)
            with tap(model, [step.at(kind=kind, layer=LAYER)]), torch.no_grad():
                ends.append(float(model(**case.inputs).logits[0, -1, 9]))
        measured = (ends[0] - ends[1]) / 2e-3
        assert float((slope * way).sum()) == pytest.approx(measured, rel=3e-3)
        assert abs(measured) > 1e-4


@torch.no_grad()
def test_a_constant_takes_the_place_of_one_stream(question):
    """A constant of zero is the same as weights of zero."""
    subject, arguments = question.subject, question.inputs.arguments
    (site,) = (s for s in subject.sites if s.kind == "cross" and s.layer == LAYER)
    rows = torch.ones(1, len(question.inputs.prefix.positions), dtype=torch.bool)
    with ablating(subject, {site.name: (torch.zeros(4, 8), rows)}, []):
        found = subject.run(arguments)
    with subject.tap([edits.scale(0).at(kind="cross", layer=LAYER)]):
        expected = subject.run(arguments)
    assert torch.allclose(found, expected, atol=1e-5)
    assert not torch.allclose(found, subject.run(arguments), atol=1e-3)


def test_branches_of_both_sites_start_in_one_call_and_keep_an_outer_edit(question):
    outer = edits.scale(0.5).at(kind="cross", layer=LAYER)
    chosen = [site for site in question.subject.sites if site.kind in ("decoder", "cross")]
    made = [Branch(site, variants.scaled([0.25, 1.0])) for site in chosen]
    with question.subject.tap([outer], sites=()):
        found = run_branches(question, made, "logit")
    for site, branched in zip(chosen, found, strict=True):
        for factor, score in zip((0.25, 1.0), branched.scores, strict=True):
            inner = edits.scale(factor).at(kind=site.kind, layer=site.layer)
            expected = target_scores(question, "logit", [outer, inner])
            torch.testing.assert_close(score, expected, atol=1e-5, rtol=1e-5)


@torch.no_grad()
def test_the_keys_of_one_stream_are_exchanged_alone(question):
    sites = [site for site in question.subject.sites if site.kind in ("decoder", "cross")]
    both = run_with_keys(question, sites)
    source, prefix = question.inputs.source.positions, question.inputs.prefix.positions
    assert {s.kind: keys.shape[1] for s, keys in both.keys.items()} == {
        "decoder": len(prefix),
        "cross": len(source),
    }
    cross = next(site for site in sites if site.name == f"cross.{LAYER}")
    turned = run_with_keys(question, [cross], lambda _, keys: keys.flip(1))
    assert torch.allclose(
        turned.calls[cross].weights, both.calls[cross].weights.flip(-1), atol=1e-6
    )
    assert all(exchanges_columns(question.subject, question.inputs).values())


def test_keys_that_do_not_give_the_whole_softmax_are_left_out(question):
    names = set(read_keys(question, question.subject.sites))
    assert names == {"encoder.0", "encoder.1"}


@pytest.mark.parametrize(
    "method", ["attention_rollout", "attention_flow", "generic_relevance", "lrp_relevance"]
)
def test_methods_that_go_from_site_to_site_refuse(question, method):
    with pytest.raises(UnsupportedModelError, match=r"T5Gemma2.* in one softmax"):
        attlas.explain(question.subject, TEXT, method, 9, prefix=PREFIX)


def test_raw_attention_divides_one_between_source_and_prefix(question):
    found = attlas.explain(question.subject, TEXT, "raw_attention", 9, prefix=PREFIX)
    assert float(torch.as_tensor(found.scores).sum()) == pytest.approx(1, abs=1e-5)
