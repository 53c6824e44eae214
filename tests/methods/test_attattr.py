"""Self-attention attribution against a loop over layers and steps on transformers' own model."""

from contextlib import contextmanager

import numpy as np
import pytest
import torch
from subjects import ASKED, TEXTS, arguments, plain, subject
from tiny import BART_SHAPE, BERT_SHAPE, GPT2_SHAPE, LLAMA_SHAPE, text_subject
from transformers.models.bert import modeling_bert

import attlas
from attlas.errors import UnknownNameError, UsageError
from attlas.models.asking.reading import attention_gradients, read_attention
from attlas.models.asking.scores import target_scores
from attlas.models.branching import branches
from attlas.models.branching.attribution import attributions
from attlas.models.branching.integrals import (
    Quadrature,
    added,
    fixed,
    kronrod,
    patterson,
    rounds,
    thrice,
)
from attlas.models.encoding.request import Request
from attlas.models.tap import recording

TASK = "sequence classification"
LAYERS = 2


@contextmanager
def raised(layer, factor):
    """BERT with the attention of one layer times a factor; the list gets that attention."""
    own, calls, raised_weights = modeling_bert.eager_attention_forward, [], []

    def attend(module, query, key, value, *args, **kwargs):
        output, weights = own(module, query, key, value, *args, **kwargs)
        calls.append(module)
        if len(calls) - 1 == layer:
            weights = (factor * weights).detach().requires_grad_()
            raised_weights.append(weights)
            output = (weights @ value).transpose(1, 2).contiguous()
        return output, weights

    modeling_bert.eager_attention_forward = attend
    try:
        yield raised_weights
    finally:
        modeling_bert.eager_attention_forward = own


def probability(given, choice):
    return plain(TASK)(**given).logits[0].softmax(-1)[choice]


def loop(given, choice, factors):
    """Attr = A ⊙ mean of dF(αA)/dA, layer by layer, `[layer, head, query, key]`."""
    found = []
    for layer in range(LAYERS):
        with raised(layer, 1.0) as seen:
            probability(given, choice)
        total = torch.zeros_like(seen[0])
        for factor in factors:
            with raised(layer, factor) as at:
                total += torch.autograd.grad(probability(given, choice), at[0])[0]
        found.append(seen[0].detach() * total / len(factors))
    return torch.cat(found)


@pytest.mark.parametrize(("rule", "steps"), [("midpoint", 5), ("right", 4)])
def test_is_the_integral_of_the_gradient_times_the_attention(rule, steps):
    text, choice = TEXTS[TASK][0], 2
    late = 0.5 if rule == "midpoint" else 1.0
    expected = loop(arguments(TASK, text), choice, [(k + late) / steps for k in range(steps)])
    found = attlas.explain(subject(TASK), text, "attattr", choice, rule=rule, steps=steps)
    for layer, site in enumerate(found.maps.sites):
        np.testing.assert_allclose(found.maps[site.name], expected[layer], atol=1e-6, rtol=1e-3)
    np.testing.assert_allclose(found.scores, expected.sum((0, 1))[0], atol=1e-6, rtol=1e-3)


def test_every_row_may_count():
    text = TEXTS[TASK][0]
    found = attlas.explain(subject(TASK), text, "attattr", 2, queries="all")
    expected = sum(weights.sum(axis=(0, 1)) for _, weights in found.maps)
    np.testing.assert_allclose(found.scores, expected, atol=1e-6)


def test_adds_up_to_what_the_layer_is_worth():
    text, choice = TEXTS[TASK][0], 2
    given = arguments(TASK, text)
    found = attlas.explain(subject(TASK), text, "attattr", choice, steps=40)
    for layer, (_, weights) in enumerate(found.maps):
        with raised(layer, 0.0):
            without = probability(given, choice).item()
        worth = probability(given, choice).item() - without
        assert weights.sum() == pytest.approx(worth, abs=2e-5)


def test_says_how_far_it_is_from_adding_up():
    text, choice = TEXTS[TASK][0], 2
    given = arguments(TASK, text)
    found = attlas.explain(subject(TASK), text, "attattr", choice, steps=1, rule="right")
    errors = []
    for layer, (_, weights) in enumerate(found.maps):
        with raised(layer, 0.0):
            without = probability(given, choice).item()
        errors.append(abs(weights.sum() - probability(given, choice).item() + without))
    assert found.notes[-1].endswith(f"largest completeness error of a site: {max(errors):.2g}")
    assert max(errors) > 1e-4
    told = [each["completeness_error"] for each in found.details.values()]
    assert told == pytest.approx(errors, abs=1e-6)
    assert list(found.details) == [site.name for site in found.maps.sites]


def test_the_maps_of_an_encoder_decoder_add_up_at_every_site():
    task = "sequence to sequence"
    asked = subject(task)
    found = attlas.explain(asked, TEXTS[task][0], "attattr", 7, steps=540, **ASKED[task])
    (question,) = asked.ask([TEXTS[task][0]], Request(7, **ASKED[task]))
    whole = float(target_scores(question, "probability"))
    kinds = set()
    for site, weights in found.maps:
        edit = attlas.edits.scale(0.0).at(kind=site.kind, layer=site.layer)
        worth = whole - float(target_scores(question, "probability", edit))
        assert weights.sum() == pytest.approx(worth, abs=1e-6, rel=2e-3)
        kinds.add(site.kind)
    assert kinds == {"encoder", "decoder", "cross"}


def test_midpoints_of_thrice_as_many_steps_hold_those_before():
    before, more, after = fixed(4, "midpoint"), added(4), fixed(12, "midpoint")
    assert sorted(before.places + more.places) == pytest.approx(after.places)
    assert more.kept / 4 == pytest.approx(after.shares[0]) == more.shares[0]
    pairs = zip(thrice(4).places, thrice(4).coarser, strict=True)
    assert [place for place, share in pairs if share] == pytest.approx(before.places)


def integral_of_power(points, shares, power):
    return sum(share * place**power for place, share in zip(points, shares, strict=True))


def test_the_seven_points_are_right_for_polynomials():
    points = kronrod()
    for power in range(12):  # seven points that hold three of Gauss: degree 11
        found = integral_of_power(points.places, points.shares, power)
        assert found == pytest.approx(1 / (power + 1), abs=1e-14)
    for power in range(6):
        found = integral_of_power(points.places, points.coarser, power)
        assert found == pytest.approx(1 / (power + 1), abs=1e-14)
    assert integral_of_power(points.places, points.shares, 12) != pytest.approx(1 / 13, abs=1e-9)


def test_the_eight_points_more_are_right_for_polynomials():
    before, points = kronrod(), patterson()
    for power in range(24):  # fifteen points that hold seven: degree 23
        found = integral_of_power(points.places, points.shares, power)
        found += integral_of_power(before.places, before.ahead, power)
        assert found == pytest.approx(1 / (power + 1), abs=1e-14)


def test_each_round_has_more_points_and_its_shares_sum_to_one():
    assert [points.steps for points in rounds()] == [7, 15, 36, 108]
    ahead = 0.0
    for points in rounds():
        assert sum(points.shares) + points.kept + ahead == pytest.approx(1)
        ahead = sum(points.ahead)
        assert not points.coarser or sum(points.coarser) == pytest.approx(1)


@pytest.mark.parametrize("tolerance", [0.1, 1e-4, 1e-7])
def test_takes_as_many_points_as_the_maps_need(tolerance):
    text, choice = TEXTS[TASK][0], 2
    found = attlas.explain(subject(TASK), text, "attattr", choice, tolerance=tolerance)
    exact = attlas.explain(subject(TASK), text, "attattr", choice, steps=324)
    for site, weights in found.maps:
        told = found.details[site.name]
        if told["steps"] not in (7, 15):
            same = attlas.explain(subject(TASK), text, "attattr", choice, steps=told["steps"])
            np.testing.assert_allclose(weights, same.maps[site.name], atol=1e-7, rtol=1e-4)
        true = exact.maps[site.name]
        error = np.abs(weights - true).sum() / np.abs(true).sum()
        assert told["steps"] in (7, 15, 36, 108)
        assert told["map_error"] <= tolerance or told["steps"] == 108
        assert error <= 2 * told["map_error"] + 1e-4


def test_rows_of_a_batch_stop_by_themselves():
    texts = ["the film was not good", "the film was so good"]
    together = attlas.explain(subject(TASK), texts, "attattr", 2, tolerance=0.002)
    for text, found in zip(texts, together, strict=True):
        alone = attlas.explain(subject(TASK), text, "attattr", 2, tolerance=0.002)
        assert found.details.keys() == alone.details.keys()
        for name, told in found.details.items():
            assert told["steps"] == alone.details[name]["steps"]


def test_the_places_of_the_rules():
    assert fixed(2, "midpoint").places == (0.25, 0.75)
    assert fixed(2, "right").places == (0.5, 1.0)


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"rule": "left"}, UnknownNameError, "unknown rule 'left'"),
        ({"queries": "cls"}, UnknownNameError, "unknown queries 'cls'"),
        ({"steps": 0}, UsageError, "steps are at least 1, not 0"),
        ({"rule": "right"}, UsageError, "the right rule needs a number of steps"),
        ({"tolerance": 0.0}, UsageError, "tolerance is above 0, not 0.0"),
    ],
)
def test_what_cannot_be_asked(options, error, message):
    with pytest.raises(error, match=message):
        attlas.explain(subject(TASK), "a cat", "attattr", **options)


FAMILIES = {
    "encoder": ("Bert", "ForSequenceClassification", "wordpiece", BERT_SHAPE),
    "decoder": ("GPT2", "LMHeadModel", "bpe", GPT2_SHAPE),
    "grouped heads": ("Llama", "ForCausalLM", "bpe", LLAMA_SHAPE),
    "encoder–decoder": ("Bart", "ForConditionalGeneration", "word_level", BART_SHAPE),
}


@pytest.mark.parametrize("kind", FAMILIES)
def test_equals_a_loop_of_whole_passes_in_double_precision(kind):
    family, head, words, shape = FAMILIES[kind]
    model, tokenizer = text_subject(family, head, words, **shape)
    asked = attlas.Subject(model.double(), tokenizer)
    given = {"prefix": "a mat"} if kind == "encoder–decoder" else {}
    (question,) = asked.ask(["the cat sat"], Request(**given))
    found = {
        each.site.name: each.weights
        for each in attributions(question, asked.sites, Quadrature(steps=3))
    }
    for number, site in enumerate(asked.sites):
        total = 0.0
        for factor in (1 / 6, 3 / 6, 5 / 6):
            edit = attlas.edits.scale(factor).at(kind=site.kind, layer=site.layer)
            total = total + attention_gradients(question, "probability", edit)[number][1] / 3
        expected = read_attention(question)[number].weights * total
        assert expected.abs().max() > 1e-8
        torch.testing.assert_close(found[site.name], expected, atol=1e-10, rtol=0)


def test_less_memory_takes_more_passes_to_the_same_figures(monkeypatch):
    passes, run = [], branches._run
    monkeypatch.setattr(branches, "_run", lambda *given: passes.append(1) or run(*given))
    (question,) = subject(TASK).ask(TEXTS[TASK][:1])
    found = {}
    for memory in (None, 1):
        passes.clear()
        every = attributions(question, question.subject.sites, Quadrature(steps=3, memory=memory))
        found[memory] = (torch.stack([each.weights for each in every]), len(passes))
    assert found[None][1] == 1
    assert found[1][1] == LAYERS * 4  # each point of each layer, and the attention at nothing
    assert torch.allclose(found[None][0], found[1][0], atol=1e-7)
    with pytest.raises(UsageError, match="memory is above 0"):
        Quadrature(memory=0)


def test_what_a_recorded_pass_depends_on():
    """A recording is of the weights where they are, without anybody's hooks, in one shape."""
    model = plain(TASK)
    given = {"input_ids": torch.ones(1, 3, dtype=torch.long)}
    before = recording.state_of(model, given)
    assert recording.state_of(model, given) == before
    assert recording.state_of(model, {"input_ids": torch.ones(1, 4, dtype=torch.long)}) != before
    handle = model.register_forward_hook(lambda *_: None)
    assert recording.state_of(model, given) != before
    handle.remove()
    assert recording.state_of(model, given) == before
    parameter = next(model.parameters())
    held = parameter.data
    parameter.data = held.clone()
    assert recording.state_of(model, given) != before
    parameter.data = held


def test_float64_says_what_float32_says():
    text = "a warm film"
    single, double = (attlas.load("sentiment", dtype=kind) for kind in ("float32", "float64"))
    found, expected = (attlas.explain(each, text, "attattr") for each in (single, double))
    np.testing.assert_allclose(found.scores, expected.scores, atol=1e-5)
    trees = [attlas.attribution_tree(each, text) for each in (single, double)]
    assert trees[0].edges and len(trees[0].edges) == len(trees[1].edges)


def test_the_pass_itself_finds_what_the_model_predicts():
    """Of a class that the user left open, nothing is known before the only pass."""
    asked, texts = subject(TASK), TEXTS[TASK][:2]
    early = asked.ask(texts)
    attlas.explain(asked, texts, "attattr", steps=3)  # what is found once is found by now
    runs = []
    handle = asked.model.register_forward_pre_hook(lambda *_: runs.append(1))
    late = asked.pose(texts, Request())
    pairs = [
        [
            torch.stack(
                [each.weights for each in attributions(one, asked.sites, Quadrature(steps=3))]
            )
            for one in two
        ]
        for two in zip(late, early, strict=True)
    ]
    handle.remove()
    assert len(runs) == len(late) + len(early)
    for own, expected in pairs:
        assert expected.abs().max() > 1e-6
        torch.testing.assert_close(own, expected, atol=1e-7, rtol=1e-4)
    for one, other in zip(late, early, strict=True):
        assert one.targets == other.targets
        for found, known in zip(one.known_scores, other.known_scores, strict=True):
            assert found == pytest.approx(known, abs=1e-5)  # of another batch, in float32


def test_a_class_that_was_asked_for_is_looked_for_first():
    asked, text = subject(TASK), TEXTS[TASK][0]
    posed = [asked.pose([text], Request(**given))[0] for given in ({}, {"target": 1})]
    assert [each.is_of_best for each in posed] == [True, False]
    assert attlas.explain(asked, text, "attattr", 1, steps=2).target.name == asked.labels[1]
