"""What a method has used is freed at once: no cycle keeps tensors until the collector runs."""

import gc

import pytest
import torch
from subjects import subject

import attlas

METHODS = (
    *("raw_attention", "attention_rollout", "gradient_attention", "generic_relevance"),
    *("value_weighted_attention", "attattr", "gradient", "integrated_gradients", "leave_one_out"),
    *("attn_lrp", "alti", "globenc", "decompx", "lrp_relevance"),
)


@pytest.fixture
def uncollected():
    """Whatever only the collector would free is left in `gc.garbage`."""
    gc.collect()
    gc.disable()
    gc.set_debug(gc.DEBUG_SAVEALL)
    yield gc.garbage
    gc.set_debug(0)
    gc.garbage.clear()
    gc.enable()


def tensors_in(garbage):
    gc.collect()
    return [each for each in garbage if isinstance(each, torch.Tensor)]


@pytest.mark.parametrize("method", METHODS)
def test_an_explanation_leaves_no_tensors_behind(method, uncollected):
    own = subject("sequence classification")
    attlas.explain(own, "a warm and funny film", method)
    gc.collect()
    uncollected.clear()
    attlas.explain(own, "a warm and funny film", method)
    assert tensors_in(uncollected) == []


def test_reading_attention_leaves_no_tensors_behind(uncollected):
    own = subject("sequence classification")
    own.attention("a warm and funny film")
    gc.collect()
    uncollected.clear()
    own.attention("a warm and funny film")
    assert tensors_in(uncollected) == []
