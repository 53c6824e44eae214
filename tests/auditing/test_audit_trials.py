"""Trials in an audit: what they find is reported, kept, and tells whether the attention is used."""

from dataclasses import replace
from functools import update_wrapper

import pytest
from audits import SMALLEST, bag_texts, small_audit, without_times
from known_models import bag_of_words, ignores_attention
from subjects import subject

from attlas.auditing.estimate import estimate
from attlas.auditing.plan import plan_audit
from attlas.auditing.work import trials
from attlas.errors import UnsupportedModelError, UsageError
from attlas.trials import TRIALS

USE = ["permutation", "uniform"]


class Stopped(Exception):
    """What stops an audit."""


def stop_at_the_report(step):
    if step.what == "the report":
        raise Stopped


def test_what_a_trial_found_is_in_the_report():
    report = small_audit(trials=USE, **SMALLEST)
    assert [each.name for each in report.trials] == ["permutation"] * 2 + ["uniform"] * 2
    first, everywhere = report.trials[:2]
    assert first.scope.startswith("last layer") and everywhere.scope.startswith("all layers")
    assert first.does_not_show == TRIALS["permutation"].does_not_show
    assert first.plots and first.figures and first.sentence
    assert "not tested" not in " ".join(report.verdict.notes)


def test_attention_that_is_not_used_is_never_supported():
    said = small_audit(ignores_attention(), trials=USE, count=30).verdict
    assert said.word in ("not supported", "too few texts")
    found = small_audit(ignores_attention(), trials=USE, **SMALLEST)
    differences = [
        each.figure.value
        for trial in found.trials
        for each in trial.figures
        if each.name == "difference"
    ]
    assert differences == pytest.approx([0.0] * 4, abs=1e-9)


def test_a_trial_that_was_done_is_read_again(tmp_path, monkeypatch):
    asked = {"trials": USE, **SMALLEST}
    whole = small_audit(**asked, out=tmp_path / "whole")
    with pytest.raises(Stopped):
        small_audit(**asked, out=tmp_path / "cut", watch=stop_at_the_report)
    monkeypatch.setattr(trials, "_run", lambda *_: pytest.fail("a trial was run again"))
    again = small_audit(**asked, out=tmp_path / "cut")
    assert without_times(again) == without_times(whole)


def test_a_trial_that_refuses_says_why(monkeypatch):
    def refuse(*_):
        raise UnsupportedModelError("there is\nno way")

    monkeypatch.setattr(trials, "_run", refuse)
    report = small_audit(trials=["erasure"], **SMALLEST)
    (trial,) = report.trials
    assert trial.sentence == "It could not be run: there is no way." and trial.figures == ()


def test_none_is_none():
    assert small_audit(trials=[], **SMALLEST).trials == ()


def test_accuracy_is_told_where_the_labels_are_known():
    subject, texts = bag_of_words(), bag_texts(6)
    labels = list(subject.predict(texts)["label"])
    asked = {"trials": ["uniform"], **SMALLEST}
    report = small_audit(subject, list(zip(texts, labels, strict=True)), **asked)
    figures = {each.name: each.figure.value for each in report.trials[0].figures}
    assert figures["right as it is"] == 1.0
    assert figures["right"] == 1.0 - figures["flips"]
    plain = small_audit(subject, texts, **asked)
    assert "right" not in {each.name for each in plain.trials[0].figures}


LEARNED = [("a great film", "POSITIVE"), ("a poor film", "NEGATIVE"), ("fine", "NEUTRAL")]
LABELLED = [(f"the {word} film was good", number % 3) for number, word in enumerate("abcdef")]


@pytest.fixture
def short_training(monkeypatch):
    """The trial that trains, with less to train."""
    whole = TRIALS["remove_and_retrain"]

    def short(questions, scope, **options):
        few = {"methods": ["raw_attention"], "shares": (0.5,), "epochs": 1}
        return whole.function(questions, scope, **few, **options)

    update_wrapper(short, whole.function)
    monkeypatch.setitem(TRIALS._parts, whole.name, replace(whole, function=short))


def test_texts_to_train_on_add_the_trial_that_trains_on_all_texts(short_training):
    told = []
    report = small_audit(
        subject("sequence classification"),
        data=LABELLED,
        **SMALLEST,
        trials=[],
        retrain=LEARNED,
        texts_for_slowest=2,
        watch=lambda step: told.append(step.what),
    )
    (section,) = report.trials
    assert (
        section.name == "remove_and_retrain"
        and "Trained again on 3 whole texts" in section.sentence
    )
    assert {each.figure.n for each in section.figures} == {len(LABELLED)}
    assert any("training 2 of 4" in what for what in told)


def test_training_again_without_texts_or_labels_is_refused_before_any_work():
    with pytest.raises(UsageError, match="needs texts to train on: name them"):
        small_audit(trials=["remove_and_retrain"])
    with pytest.raises(UsageError, match="needs texts with labels that the model predicts"):
        small_audit(trials=[], retrain=LEARNED)


def test_other_training_texts_are_another_audit_and_the_estimate_counts_them():
    def planned(retrain):
        tiny = subject("sequence classification")
        return plan_audit(
            tiny, LABELLED, ["raw_attention"], ["comprehensiveness"], [], retrain=retrain
        )

    plain, one, two = (planned(each) for each in (None, LEARNED, LEARNED[:2]))
    assert one.identity() != two.identity() and "training" not in plain.identity()
    assert "training again" not in estimate(plain).seconds_by_work
    assert estimate(one).seconds_by_work["training again"] > 0
