from copy import deepcopy

import numpy as np
import pytest
import torch
from known_models import copies_attended, ignores_attention
from scipy.spatial.distance import jensenshannon
from subjects import TEXTS, arguments, ask, on_eager, subject

from attlas.data.example import Example
from attlas.errors import UnsupportedModelError, UsageError
from attlas.models.asking import filling
from attlas.models.encoding.request import Request
from attlas.models.intervening.attention_copy import attention_copy
from attlas.models.subject import Subject
from attlas.results import Site
from attlas.trials.consistent_adversary import (
    AGREES,
    CHANGE,
    DISTANCE,
    TrainedAdversary,
    _search_each,
    choose,
    consistent_adversary,
)
from attlas.trials.searching.leeway import Leeway, divergence
from attlas.trials.searching.retraining import SEEDS
from attlas.trials.searching.trained_copy import TrainingPace, make_case, train
from attlas.trials.support.scope import Scope

TASK = "sequence classification"


def names_of(copied):
    names = {id(each): name for name, each in copied.subject.model.named_parameters()}
    return {names[id(each.weight)]: each for each in copied.weights}


def test_query_and_key_weights_are_found_whatever_they_are_called():
    asked = ask(TASK)
    found = names_of(attention_copy(asked, asked.subject.sites[-1:]))
    prefix = "bert.encoder.layer.1.attention.self"
    assert {f"{prefix}.query.weight", f"{prefix}.key.weight"} <= set(found)
    assert all(".query." in name or ".key." in name for name in found)


def test_of_projections_in_one_the_values_are_left_alone():
    asked = ask("causal lm")
    found = names_of(attention_copy(asked, asked.subject.sites[-1:]))
    part = found["transformer.h.1.attn.c_attn.weight"].trainable
    width = part.shape[0]
    assert part[:, : 2 * width].all()
    assert not part[:, 2 * width :].any()


def test_tables_of_position_are_no_query_or_key_weights():
    asked = ask("sequence to sequence")
    found = names_of(attention_copy(asked, asked.subject.sites))
    assert len(found) == 2 * len(asked.subject.sites)
    assert not any("relative" in name for name in found)


@pytest.mark.parametrize("task", [TASK, "causal lm"])
def test_training_moves_queries_and_keys_of_the_copy_alone(task):
    asked = ask(task)
    before = {name: each.clone() for name, each in asked.subject.model.state_dict().items()}
    copied = attention_copy(asked, asked.subject.sites[-1:])
    case = make_case(copied, asked, Scope())
    weights = copied.freeze_all_but_attention()
    for each in copied.weights:
        each.shake(0.5, torch.Generator().manual_seed(0))
    train(copied, weights, [case], lambda one: -one.distance(one.run()), TrainingPace(3, 0.01))
    loose = names_of(copied)
    for name, each in copied.subject.model.state_dict().items():
        assert torch.equal(asked.subject.model.state_dict()[name], before[name])
        fixed = ~loose[name].trainable if name in loose else torch.ones_like(each, dtype=torch.bool)
        assert torch.equal(each[fixed], before[name][fixed])
    assert any(not torch.equal(each.weight, each.own) for each in copied.weights)


def test_distances_are_those_of_the_copy_run_by_transformers():
    asked = ask(TASK)
    copied = attention_copy(asked, asked.subject.sites[-1:])
    case = make_case(copied, asked, Scope())
    for each in copied.weights:
        each.shake(2.0, torch.Generator().manual_seed(0))
    with torch.no_grad():
        passed = case.run()
        given = arguments(TASK, TEXTS[TASK][0])
        models = [on_eager(deepcopy(each.model)) for each in (asked.subject, copied.subject)]
        own, new = (model(**given, output_attentions=True) for model in models)
    content = ~np.array(asked.inputs.tokens[0].special)
    rows = [each.attentions[-1][0, :, 0].double().numpy()[:, content] for each in (own, new)]
    apart = jensenshannon(*rows, axis=-1) ** 2  # which divides by the sums itself
    off = (own.logits.softmax(-1) - new.logits.softmax(-1)).abs().sum() / 2
    assert float(case.distance(passed)) == pytest.approx(apart.mean(), rel=1e-3)
    assert float(case.change(passed)) == pytest.approx(float(off), abs=1e-5)


def test_where_nothing_reads_the_attention_a_copy_may_attend_as_it_likes():
    texts = ["good bad fine", "bad fine good", "fine bad bad", "good good bad"]
    found = consistent_adversary(
        ignores_attention().ask(texts), lambdas=(1.0,), epochs=40, rate=0.05, steps=3
    )
    judged = [number in (1, 3) for number in found.texts]
    assert np.array_equal(~np.isnan(found.figures[AGREES]), judged)
    assert np.nanmax(np.abs(found.figures[CHANGE])) < 1e-6
    assert found.figures[AGREES][judged].tolist() == [1, 1]
    assert np.nanmin(found.figures[DISTANCE]) > 0.1
    assert np.nanmax(found.figures[DISTANCE] - found.ceilings[DISTANCE]) <= 1e-6


def point(weight, change, distance):
    nothing = np.zeros(1)
    return TrainedAdversary(weight, nothing, nothing, nothing, change, distance)


def test_the_farthest_that_keeps_the_answers_counts():
    near, far, gone = point(0.1, 0.01, 0.2), point(0.3, 0.05, 0.4), point(1.0, 0.2, 0.6)
    assert choose([near, far, gone]) is far
    assert choose([gone, point(3.0, 0.3, 0.65)]) is gone


def test_with_examples_the_top_is_trained_again():
    asked = subject(TASK)
    labels = asked.labels
    examples = [Example(TEXTS[TASK][n % 3], labels[n % 2]) for n in range(4)]
    before = {name: each.clone() for name, each in asked.model.state_dict().items()}
    found = consistent_adversary(
        asked.ask(TEXTS[TASK][:1]), lambdas=(0.1,), epochs=2, steps=2, training=examples, seeds=2
    )
    assert all(torch.equal(each, before[name]) for name, each in asked.model.state_dict().items())
    accuracy = found.details["retrained"]["accuracy"]
    right = asked.predict([each.text for each in examples[1::2]])["label"]
    wanted = [each.label for each in examples[1::2]]
    assert accuracy["as it is"] == [np.mean([a == b for a, b in zip(right, wanted, strict=True)])]
    assert len(accuracy["seeds"]) == 2
    assert found.figures[SEEDS].min() > 0


def distances(scope, seed):
    few = {"lambdas": (0.1,), "epochs": 2, "steps": 1}
    return consistent_adversary([ask("causal lm")], scope, seed=seed, **few).figures[DISTANCE]


def test_a_seed_finds_the_same():
    assert distances(Scope(), 1) == distances(Scope(), 1) != distances(Scope(), 2)


def test_where_the_layers_above_are_held_it_is_another_search():
    assert distances(Scope("all"), 1) > 0
    assert distances(Scope("layer", 0), 1) != distances(Scope("layer", 0, frozen=True), 1) > 0


def test_attention_that_moves_with_nothing_is_refused():
    with pytest.raises(UnsupportedModelError, match="depends on no weight"):
        consistent_adversary(copies_attended().ask(["good BAD", "bad GOOD"]))
    with pytest.raises(UsageError, match="numbers of at least 0"):
        consistent_adversary([ask(TASK)], lambdas=(-1.0,))
    with pytest.raises(UsageError, match="unknown label"):
        consistent_adversary(
            [ask(TASK)], lambdas=(0.1,), epochs=1, training=[Example("a", "dull")] * 2
        )


def test_weights_too_small_for_their_gradient_take_none():
    """The way from weights to shares is as steep as the weights are small: here beyond single."""
    whole = torch.tensor([[[[0.2, 0.3, 0.5]], [[0.2, 0.3, 0.5]]]])
    free = torch.tensor([False, True, True]).expand(1, 2, 1, 3)
    given = Leeway(Site("encoder", 0, 2), whole, torch.tensor([0]), free)
    weights = torch.tensor([[[[1.0, 1e-40, 3e-40]], [[0.6, 0.1, 0.3]]]], requires_grad=True)
    shares = given.shares_of(weights)
    torch.testing.assert_close(shares[0, :, 0, 1:], torch.tensor([0.25, 0.75]).expand(2, 2))
    divergence([given], [shares], [given.own]).sum().backward()
    assert torch.isfinite(weights.grad).all()
    assert not weights.grad[0, 0].any() and weights.grad[0, 1].any()


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_a_copy_of_a_model_in_half_precision_can_be_trained(dtype):
    loaded = subject(TASK)
    half = Subject(deepcopy(loaded.model).to(dtype), loaded.tokenizer)
    (asked,) = half.ask(TEXTS[TASK][:1], Request())
    copied = attention_copy(asked, half.sites[-1:])
    case = make_case(copied, asked, Scope())
    weights = copied.freeze_all_but_attention()
    for each in copied.weights:
        each.shake(0.1, torch.Generator().manual_seed(0))
    before = [each.detach().clone() for each in weights]
    train(copied, weights, [case], lambda each: -each.distance(each.run()), TrainingPace(3, 0.01))
    assert all(torch.isfinite(each).all() for each in weights)
    assert not all(torch.equal(*pair) for pair in zip(weights, before, strict=True))
    assert {each.dtype for each in half.model.parameters()} == {dtype}


def test_a_text_in_which_nothing_can_change_spoils_nothing():
    """One content token: all its weight is where it is, and its distance is not a number."""
    asked = ask(TASK, "film")
    copied = attention_copy(asked, asked.subject.sites[-1:])
    case = make_case(copied, asked, Scope())
    weights = copied.freeze_all_but_attention()
    before = [each.detach().clone() for each in weights]
    train(copied, weights, [case], lambda each: -each.distance(each.run()), TrainingPace(1, 0.1))
    assert all(torch.equal(*pair) for pair in zip(weights, before, strict=True))


def test_searches_stand_in_the_order_of_the_texts_whatever_batches_they_were_in(monkeypatch):
    texts = ["a cat sat", "the film was not good", "a dog", "my dog was not kind", "not good"]
    judged = list(subject(TASK).ask(texts, Request()))
    apart = _search_each(judged, Scope(), 3, seed=1)
    monkeypatch.setattr(filling, "NEAR", {"cpu": 3})
    monkeypatch.setattr(filling, "SMALL", 0)
    lengths = [len(each) for each in filling.fill(judged)]
    assert len(lengths) == 2 and len(judged) > 2
    together = _search_each(judged, Scope(), 3, seed=1)
    for before, after in zip(apart, together, strict=True):
        np.testing.assert_allclose(after, before, rtol=1e-4, atol=1e-6)
