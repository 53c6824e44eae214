"""The study of Wiegreffe and Pinter: guides, adversaries and seeds, against their definitions."""

import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from studies.recurrent_models import TEXTS, trained

import attlas
from attlas.errors import UnknownNameError
from attlas.models.recurrent.fitting import FitPlan
from attlas.studies.recurrent import consistency_figures as figures
from attlas.studies.recurrent import readings, training
from attlas.studies.wiegreffe_pinter import claims_of


def test_answers_are_in_the_order_of_the_texts():
    found = trained()
    made = readings.answers_of(found.model, found.test)
    for number, (text, _) in enumerate(TEXTS):
        ids = found.tokenizer(text, return_tensors="pt")["input_ids"]
        states = found.model.encode(ids)
        expected = found.model.weigh(states)[0]
        torch.testing.assert_close(made.weights[number, : len(expected)], expected)
        torch.testing.assert_close(made.sure[number], found.model(ids).logits.softmax(dim=-1)[0])


def test_even_weights_go_to_all_tokens_that_have_any():
    found = readings.even_weights(torch.tensor([[0.0, 0.9, 0.1, 0.0], [0.0, 1.0, 0.0, 0.0]]))
    assert found.tolist() == [[0.0, 0.5, 0.5, 0.0], [0.0, 1.0, 0.0, 0.0]]


def test_the_loss_of_an_adversary_is_change_less_lambda_times_divergence():
    found = trained()
    base = readings.answers_of(found.model, found.test)
    batch = found.test.batch([0, 1, 2, 3])
    assert float(training.adversary_loss(base, 0.3)(found.model, batch)) == pytest.approx(
        0, abs=1e-5
    )
    # Against a base that attends evenly and is sure of the first class, by hand.
    even = readings.even_weights(base.weights)
    sure = torch.tensor([[1.0, 0.0]]).expand(4, -1)
    loss = training.adversary_loss(readings.Answers(even, sure), 0.3)(found.model, batch)
    seen = base.weights > 0
    logs = torch.where(seen, (base.weights / even.where(seen, torch.ones(()))).log(), 0.0)
    expected = base.sure[:, 1].sum() - 0.3 * (base.weights * logs).sum()
    assert float(loss) == pytest.approx(float(expected), abs=1e-4)


def test_an_adversary_learns_to_attend_elsewhere():
    found = trained()
    base = readings.answers_of(found.model, found.test)
    plan = FitPlan(epochs=40, rows=4, rate=0.02)
    apart = [
        readings.distances(readings.answers_of(model, found.test), base)[1].mean()
        for model in (training.train_adversary(found, base, weight, plan) for weight in (0.0, 1.0))
    ]
    assert apart[1] > apart[0] + 0.1


def test_training_ends_when_the_loss_no_longer_falls():
    found = trained()
    model = training.fresh_model(found, 0)
    plan = FitPlan(epochs=30, rows=4, patience=2)
    flat = [
        loss
        for loss in training.train_by(
            model,
            found.train,
            plan,
            lambda model, batch: model(**batch.arguments).logits.sum() * 0.0,
        )
    ]
    assert flat == [0.0, 0.0, 0.0]
    assert (
        len(
            list(
                training.train_by(
                    model,
                    found.train,
                    replace(plan, patience=None, epochs=5),
                    lambda model, batch: model(**batch.arguments).logits.sum() * 0.0,
                )
            )
        )
        == 5
    )


def test_a_guided_model_sees_the_words_that_its_guide_shows():
    found = trained()
    # Each text shows one word. Shown the telling word, the labels can be learned; shown the same
    # word in texts of both labels, two of four stay wrong.
    ids, plan = found.test.ids, FitPlan(epochs=60, rows=4, rate=0.05)

    def guides(words):
        numbers = [found.tokenizer.convert_tokens_to_ids(word) for word in words]
        marks = torch.stack([row == number for row, number in zip(ids, numbers, strict=True)])
        return (marks / marks.sum(dim=1, keepdim=True)).float()

    telling = guides(["warm", "not", "dull", "good"])
    assert training.guided_figures(found, (telling, telling), plan)["accuracy"] == 1.0
    alike = guides(["and", "good", "and", "good"])
    assert training.guided_figures(found, (alike, alike), plan)["accuracy"] == 0.5


def test_quality_is_accuracy_and_f1_of_the_second_class():
    sure = np.array([[0.1, 0.9], [0.2, 0.8], [0.9, 0.1], [0.6, 0.4]])
    found = readings.quality(sure, np.array([1, 0, 0, 1]))
    # One right positive of two predicted and two true ones.
    assert found["accuracy"] == 0.5 and found["f1"] == pytest.approx(0.5)
    # Of the four pairs, the true positive at 0.9 beats both, the one at 0.4 beats one.
    assert found["auc"] == pytest.approx(0.75)


def part(weights, sure=0.5, **others):
    rows = [weights] if isinstance(weights[0], float) else weights
    return {"weights": rows, "sure": [[1 - sure, sure]] * len(rows), **others}


def test_seeds_are_compared_by_their_median_divergence():
    parts = [
        part([0.0, 1.0]),
        part([0.0, 1.0], 0.7),
        part([0.0, 0.0, 1.0], 0.6),
        part([0.0, 0.5, 0.5]),
    ]
    found = readings.seed_distances(parts, 0)
    half = (math.log(1 / 0.75) + 0.5 * math.log(0.5 / 0.75) + 0.5 * math.log(0.5 / 0.25)) / 2
    assert found.jsd[0] == pytest.approx(half, abs=1e-6)  # of 0, ln 2 and this one
    assert found.change[0] == pytest.approx(0.1) and found.largest[0] == 1.0


def test_the_farthest_adversary_within_the_allowed_change_is_the_better():
    inside, farther = {"change": 0.01, "jsd": 0.1}, {"change": 0.04, "jsd": 0.3}
    outside, worse = {"change": 0.2, "jsd": 0.6}, {"change": 0.4, "jsd": 0.65}
    better = figures._is_better
    assert better(farther, inside) and not better(inside, farther)
    assert better(inside, outside) and not better(outside, inside)
    assert better(outside, worse) and not better(worse, outside)


def test_a_search_on_each_text_moves_more_where_more_is_allowed():
    points = figures.search_curve(trained(), 30, 0)
    assert [point["tolerance"] for point in points] == list(figures.TOLERANCES)
    assert all(point["change"] <= point["tolerance"] for point in points)
    distances = [point["jsd"] for point in points]
    assert distances == sorted(distances)


def model(cost, guide, far):
    others = {
        "base": {"accuracy": 0.8},
        "uniform": {"accuracy": 0.8 - cost},
        "guides": {
            "uniform": {"accuracy": 0.7},
            "base": {"accuracy": guide},
            "adversary": {"accuracy": 0.65},
        },
        "curve": [{"change": 0.04, "jsd": far}, {"change": 0.3, "jsd": 0.69}],
        "adversary": {"change": 0.04, "jsd": far},
        "search": [{"tolerance": each, "change": each, "jsd": 0.5} for each in figures.TOLERANCES],
    }
    return part([0.0, 0.6, 0.4], **others)


def test_claims_hold_on_models_as_published_and_fail_on_others():
    good = {"sst": [model(0.005, 0.75, 0.4)] * 3, "facts": [model(0.4, 0.75, 0.4)] * 3}
    assert {claim.verdict for claim in claims_of(good, "sst")} == {"reproduced"}
    bad = {"sst": [model(0.1, 0.6, 0.6)] * 3, "facts": [model(0.0, 0.6, 0.6)] * 3}
    verdicts = [claim.verdict for claim in claims_of(bad, "sst")]
    assert verdicts.count("not reproduced") == 5
    without = list(claims_of({"sst": good["sst"][:1]}, "sst"))
    assert [claim.verdict for claim in without].count("not tested here") == 2


def test_a_wrong_task_is_named():
    with pytest.raises(UnknownNameError, match="unknown task 'snli'"):
        attlas.study("wiegreffe_pinter", quick=True, data=("snli",))
