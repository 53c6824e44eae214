"""What attention says of tokens, layer by layer, on two tokens and two layers worked by hand."""

import numpy as np
import pytest
from known_models import copies_attended

from attlas.studies.support.token_importance import (
    agreement_by_layer,
    correlate,
    flow_rows,
    raw_rows,
    rollout_rows,
)

# Of the published definitions: A1 below A2, the residual share is one half.
MAPS = np.array([[[0.7, 0.3], [0.4, 0.6]], [[0.5, 0.5], [0.2, 0.8]]])


def test_rows_of_two_layers_are_those_worked_by_hand():
    assert raw_rows(MAPS, 1).tolist() == [[0.4, 0.6], [0.2, 0.8]]
    assert rollout_rows(MAPS, 0)[1] == pytest.approx([0.6875, 0.3125])
    assert rollout_rows(MAPS, 1)[1] == pytest.approx([0.265, 0.735])
    assert flow_rows(MAPS, 0)[1] == pytest.approx([0.7037, 0.2963], abs=1e-4)
    assert flow_rows(MAPS, 1)[1] == pytest.approx([0.25, 0.75], abs=1e-4)


def test_the_first_layer_has_the_raw_weights_and_the_residual():
    expected = 0.5 * MAPS[0] + 0.5 * np.eye(2)
    for position in (0, 1):
        assert rollout_rows(MAPS, position)[0] == pytest.approx(expected[position])
        assert flow_rows(MAPS, position)[0] == pytest.approx(expected[position], abs=1e-6)


def test_correlations_are_of_ranks():
    importance = np.array([0.1, 0.5, 0.9])
    found = correlate(np.array([[1.0, 2.0, 3.0], [3.0, 2.0, 1.0]]), importance)
    assert found == pytest.approx([1, -1])
    assert np.isnan(correlate(np.ones((1, 2)), np.ones(2))).all(), "two tokens are too few"


def test_a_model_that_copies_the_attended_word_is_read_by_its_attention():
    found = agreement_by_layer(copies_attended().ask(["GOOD bad bad", "bad good BAD good"]))
    # The word that decides is the one attended to, and all others are equal in both.
    assert found["blank-out, raw"] == pytest.approx(np.ones((2, 1)))
