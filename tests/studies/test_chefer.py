"""The study of relevance: token F1 and sets to mask, worked by hand, and its rules."""

import numpy as np
import pytest
from known_models import bag_of_words

import attlas
from attlas.data.example import Example
from attlas.errors import UnsupportedModelError
from attlas.studies import chefer
from attlas.studies.chefer import f1_at, masked_sets, measure_method
from attlas.studies.tables.rationale_scores import claims_on


def test_token_f1_by_hand():
    scores, marks = np.array([0.9, 0.1, 0.5, 0.2]), np.array([True, False, False, True])
    # The two highest hold one of two marked: precision ½, recall ½.
    assert f1_at(scores, marks, 2) == pytest.approx(0.5)
    # The three highest hold both: precision ⅔, recall 1.
    assert f1_at(scores, marks, 3) == pytest.approx(0.8)
    assert np.isnan(f1_at(scores, marks, 5)) and np.isnan(f1_at(scores, ~marks & marks, 1))


def test_the_lowest_order_is_masked_first():
    sets = masked_sets(np.arange(10.0)[::-1])
    assert sets.shape == (9, 10) and sets.sum(axis=1).tolist() == list(range(1, 10))
    assert sets[0].tolist() == [False] * 9 + [True]
    assert (sets[1:] >= sets[:-1]).all()


def found(f1, positive, negative):
    one = {
        "f1": [[f1] * 2] * 3,
        "positive": [[positive] * 9] * 3,
        "negative": [[negative] * 9] * 3,
    }
    return [one]


def test_claims_compare_with_both_baselines():
    rivals = {name: found(0.2, 0.6, 0.6) for name in ("raw_attention", "attention_rollout")}
    better = {name: found(0.3, 0.4, 0.8) for name in ("lrp_relevance", "generic_relevance")}
    assert {claim.verdict for claim in claims_on({**rivals, **better}, (1, 2))} == {"reproduced"}
    worse = {name: found(0.1, 0.7, 0.5) for name in better}
    assert {claim.verdict for claim in claims_on({**rivals, **worse}, (1, 2))} == {"not reproduced"}
    missing = claims_on({**rivals, "lrp_relevance": better["lrp_relevance"]}, (1, 2))
    assert sum(claim.verdict == "not tested here" for claim in missing) == 6


def test_the_truth_of_a_bag_of_words_falls_fastest():
    subject = bag_of_words()
    example = Example("w01 w02 w03 w04 w05 w06", "POSITIVE", ((0, 3),))
    truth = measure_method(subject, [example], "leave_one_out", (1, 2))
    chance = measure_method(subject, [example], "random_scores", (1, 2))
    assert truth["refused"] == "" and len(truth["positive"][0]) == 9
    assert np.mean(truth["positive"]) <= np.mean(chance["positive"])
    assert np.mean(truth["negative"]) >= np.mean(chance["negative"])


def test_each_method_is_done_on_all_models_and_cheap_ones_come_first(monkeypatch):
    asked = []

    def noted(subject, examples, method, tops):
        asked.append((method, subject))
        one = [[0.5] * 9]
        return {"refused": "", "f1": [[0.5] * 3], "positive": one, "negative": one}

    monkeypatch.setattr(chefer, "measure_method", noted)
    monkeypatch.setattr(chefer, "load", lambda each, device: each)
    monkeypatch.setattr(chefer, "models_at", lambda name: ["a", "b"])
    methods = ("attattr", "lrp_relevance", "decompx", "raw_attention")
    found = attlas.study("chefer", quick=True, methods=methods)
    turns = ("lrp_relevance", "raw_attention", "attattr", "decompx")
    assert asked == [(method, model) for method in turns for model in ("a", "b")]
    assert tuple(found.details) == methods


def test_a_method_that_cannot_run_says_why(monkeypatch):
    def refuse(question, method):
        raise UnsupportedModelError("it cannot")

    monkeypatch.setattr(chefer, "_scores", refuse)
    example = Example("w01 w02", "POSITIVE", ((0, 3),))
    assert (
        measure_method(bag_of_words(), [example], "raw_attention", (1,))["refused"] == "it cannot"
    )
