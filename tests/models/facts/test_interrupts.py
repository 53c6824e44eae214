"""Ctrl-C at any moment while a model is opened and closed: the model is as it was before."""

import pytest
import torch
from interrupting import CHANGING, count_moments, interrupt_at, is_free, state_of
from subjects import few
from tiny import subject_parts

import attlas
from attlas.models.facts.evaluation_mode import evaluation_mode
from attlas.models.tap import edits
from attlas.models.tap.opening import tap
from attlas.restoring import settled


@pytest.fixture
def trained():
    """A subject whose model is being trained: all of it learns, and dropout is on."""
    own = attlas.Subject(*subject_parts("sequence classification"))
    own.model.train()
    own.sites  # noqa: B018  found once
    return own


def test_at_moments_of_a_block(trained):
    @settled
    def work():
        with evaluation_mode(trained.model), tap(trained.model, [edits.uniform()]):
            pass

    work()
    before, total = state_of(trained.model), count_moments(work, CHANGING)
    for moment in range(0, total, 5):
        interrupt_at(moment, work, CHANGING)
        assert state_of(trained.model) == before, moment
    assert total > 100
    assert is_free(trained.model)
    assert torch.overrides._get_current_function_mode() is None


@pytest.mark.parametrize("method", ["raw_attention", "alti", "attn_lrp", "lrp_relevance"])
def test_at_moments_when_things_are_put_in_place(method, trained):
    """Of each explanation a few moments of the files that change the model."""

    def work():
        attlas.explain(trained, "the film was not good", method, maps=False, **few(method))

    work()
    before, total = state_of(trained.model), count_moments(work, CHANGING)
    for moment in range(7, total, max(1, total // 12)):
        assert interrupt_at(moment, work, CHANGING)
        assert state_of(trained.model) == before, moment
    assert is_free(trained.model)
