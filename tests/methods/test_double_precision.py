"""A model in float64: what integrates gradients gives what it gives in float32."""

import numpy as np
import pytest
from subjects import ASKED, TEXTS, subject
from tiny import subject_parts

import attlas


def double(task):
    model, tokenizer = subject_parts(task)
    return attlas.Subject(model.double(), tokenizer)


@pytest.mark.parametrize("task", ["sequence classification", "causal lm", "sequence to sequence"])
def test_attattr(task):
    both = (subject(task), double(task))
    found = [attlas.explain(own, TEXTS[task], "attattr", **ASKED.get(task, {})) for own in both]
    for one, other in zip(*found, strict=True):
        size = np.abs(one.scores).max()
        np.testing.assert_allclose(other.scores, one.scores, atol=2e-3 * size)


def test_trees_triggers_and_heads():
    own, texts = double("sequence classification"), TEXTS["sequence classification"]
    data = [(text, own.labels[number % 2]) for number, text in enumerate(texts * 2)]
    assert attlas.attribution_tree(own, texts[0]).edges
    assert attlas.triggers(own, data).to_dict()
    assert attlas.head_importance(own, data, by="attattr").to_dict()


def test_check_tries_every_method():
    assert set(attlas.check(double("sequence classification")).methods.values()) == {""}
