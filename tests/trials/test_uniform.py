"""Uniform attention, worked by hand; test_permutation.py holds it to plain loops."""

import known_models
import numpy as np

import attlas
from attlas.data.generated import facts
from attlas.trials import Scope, attention_use
from attlas.trials.uniform import uniform


def test_uniform_attention_of_the_model_that_copies_is_worked_by_hand():
    asked = known_models.copies_attended().ask(["GOOD bad bad", "BAD good"])
    tried = uniform(asked)
    sigmoid = 1 / (1 + np.exp(-2 * np.array([4, -4 / 3, -4, 0])))
    assert tried.texts == (0, 1)
    expected = [sigmoid[0] - sigmoid[1], sigmoid[3] - sigmoid[2]]
    assert np.allclose(tried.figures["difference"], expected, atol=1e-6)
    assert tried.figures["flips"][0] == 1
    assert np.allclose(tried.figures["largest weight"], 1)
    # The mean over both texts of what the readout row copies is nothing: even chances.
    assert np.allclose(tried.figures["difference by its mean"], sigmoid[0] - 0.5, atol=1e-6)


def test_a_last_layer_that_is_not_used_does_not_hide_the_ones_below():
    texts = [example.text for example in facts.generate(16, seed=0)]
    asked = attlas.load("facts").ask(texts)
    last, whole = uniform(asked), uniform(asked, Scope("all"))
    assert attention_use(last).high == 0
    assert attention_use(last, whole).low > 0.2
