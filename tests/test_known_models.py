"""The models of known truth are what they say, by transformers alone."""

import numpy as np
import pytest
import torch
from known_models import (
    WEIGHTS,
    bag_of_words,
    copies_attended,
    ignores_attention,
    text_of,
    true_scores,
)

import attlas
from attlas.models.tap.edits import uniform


def logits(subject, text):
    given = subject.tokenizer(text, return_tensors="pt")
    with torch.no_grad():
        return subject.model(**given).logits[0]


@pytest.mark.parametrize("seed", range(5))
def test_the_logit_of_a_bag_is_the_sum_of_its_weights(seed):
    text = text_of(12, seed)
    total = sum(WEIGHTS[word] for word in text.split())
    assert logits(bag_of_words(), text).tolist() == pytest.approx([-total, total], abs=1e-5)
    others = " ".join(reversed(text.split()))
    assert logits(bag_of_words(), f"[MASK] {others} [PAD] nothing [MASK]").tolist() == (
        pytest.approx([-total, total], abs=1e-5)
    )


def test_all_weights_differ_and_none_is_zero():
    assert len({round(weight, 6) for weight in WEIGHTS.values()}) == len(WEIGHTS) == 60
    assert min(map(abs, WEIGHTS.values())) > 1e-3


def test_true_scores_are_for_the_class_that_is_predicted():
    for text in ("w00 w01", text_of(9, 3), text_of(9, 4)):
        best = logits(bag_of_words(), text).max().item()
        assert true_scores(text).sum() == pytest.approx(best, abs=1e-5)


def test_a_bag_looks_about_but_does_not_see():
    subject, text = ignores_attention(), "good bad fine"
    weights = subject.attention(text).weights[0]
    assert np.abs(weights - 1 / weights.shape[-1]).max() > 0.1
    with subject.tap(uniform()):
        assert logits(subject, text).tolist() == pytest.approx([-0.5, 0.5], abs=1e-5)


@pytest.mark.parametrize(
    ("text", "label"),
    [("good bad GOOD bad", "POSITIVE"), ("good good BAD", "NEGATIVE"), ("GOOD bad", "POSITIVE")],
)
def test_the_attended_word_is_copied(text, label):
    subject = copies_attended()
    assert subject.predict([text])["label"][0] == label
    marked = 1 + [word.isupper() for word in text.split()].index(True)
    for weights in subject.attention(text).weights:
        assert (weights[:, :, marked] == 1).all()
    found = attlas.explain(subject, text, "raw_attention")
    assert found.scores.argmax() == marked
