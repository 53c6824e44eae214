"""A model that cuts gradients itself is told apart from attention that does not count."""

import numpy as np
import pytest
import torch
from subjects import small
from tiny import BERT_SHAPE, LABELS, labels

import attlas
from attlas.errors import UnsupportedModelError
from attlas.methods import METHODS

TEXT = "a cat sat"
CUT = "BertForSequenceClassification lets no gradient through to its attention at encoder 0–0"
NEED_GRADIENTS = (
    "attattr",
    "attn_lrp",
    "generic_relevance",
    "gradient",
    "gradient_attention",
    "input_x_gradient",
    "integrated_gradients",
    "lrp_relevance",
)


def bert(frozen):
    """Two layers, of which the first ones run without gradients."""
    subject = small("Bert", "ForSequenceClassification", **BERT_SHAPE, **labels(*LABELS))
    for layer in subject.model.bert.encoder.layer[:frozen]:
        layer.forward = torch.no_grad()(layer.forward)
    return subject


def gradient_of(subject, site):
    arguments = subject.encode(TEXT).arguments
    with torch.enable_grad(), subject.tap(gradients=True, sites=[site]) as seen:
        total = subject.model(**arguments).logits[0, 0]
        return torch.autograd.grad(total, seen.weights)[0]


@pytest.fixture(scope="module")
def cut():
    return bert(frozen=1)


def test_attention_below_a_cut_counts(cut):
    assert [site.name for site in cut.sites] == ["encoder.0", "encoder.1"]
    with pytest.raises(UnsupportedModelError, match=CUT), cut.tap(gradients=True):
        pass


def test_above_a_cut_the_gradient_is_that_of_the_whole_model(cut):
    whole = bert(frozen=0)
    torch.testing.assert_close(*(gradient_of(each, each.sites[1]) for each in (cut, whole)))


def test_what_needs_no_gradient_there_is_as_it_was(cut):
    whole = bert(frozen=0)
    for name in ("raw_attention", "attention_rollout", "leave_one_out"):
        one, other = (attlas.explain(each, TEXT, name) for each in (cut, whole))
        np.testing.assert_allclose(one.scores, other.scores, atol=1e-6)


@pytest.mark.parametrize("name", NEED_GRADIENTS)
def test_what_needs_gradients_is_refused_by_name(cut, name):
    assert METHODS[name]
    with pytest.raises(UnsupportedModelError, match=CUT):
        attlas.explain(cut, TEXT, name)


def test_a_model_without_any_gradient():
    """Where even the head lets none through, the places that it reads cannot be found either."""
    subject = bert(frozen=2)
    subject.model.forward = torch.no_grad()(subject.model.forward)
    assert len(subject.sites) == 2
    with pytest.raises(UnsupportedModelError, match="no gradient through its last layers"):
        attlas.explain(subject, TEXT, "raw_attention")
    with pytest.raises(UnsupportedModelError, match="its attention at encoder 0–1"):
        attlas.explain(subject, TEXT, "gradient")
    assert np.isfinite(attlas.explain(subject, TEXT, "leave_one_out").scores).all()
