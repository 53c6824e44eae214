"""Disagreement, worked by hand and against a loop over pairs of heads."""

from itertools import combinations

import pytest
import torch
from learners import TEXTS, classifier, step_of

import attlas
from attlas.errors import UnsupportedModelError
from attlas.objectives.disagreement import disagreement, likeness


def test_cases_by_hand():
    seen = torch.tensor([[True, False]])
    heads = torch.tensor([[[[1.0, 0.0], [7.0, 7.0]], [[3.0, 0.0], [7.0, 7.0]]]])
    assert likeness(heads, seen).item() == pytest.approx(1)
    apart = torch.tensor([[[[1.0, 0.0], [7.0, 7.0]], [[0.0, 3.0], [7.0, 7.0]]]])
    assert likeness(apart, seen).item() == pytest.approx(0)


@pytest.mark.parametrize("of", ["outputs", "values", "attention"])
def test_it_is_the_mean_over_pairs(of):
    step = step_of(classifier().eval())
    found = disagreement(step, layer=-1, of=of)
    call = step.calls[-1]
    chosen = {"values": call.values, "attention": call.weights}
    vectors = chosen.get(of, torch.matmul(call.weights, call.values))
    for row in range(len(found)):
        alike = [
            torch.cosine_similarity(vectors[row, one], vectors[row, two], dim=-1)[step.content[row]]
            for one, two in combinations(range(4), 2)
        ]
        torch.testing.assert_close(found[row], torch.stack(alike).mean(), atol=1e-5, rtol=1e-4)


def test_one_head_cannot_disagree():
    with pytest.raises(UnsupportedModelError, match="between heads"):
        attlas.train("bilstm", TEXTS, epochs=1, vector_size=8, objectives="disagreement")
