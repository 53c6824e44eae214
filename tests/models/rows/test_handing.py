"""Rows computed again, against the whole maps of every family on the interface."""

import subjects
import tiny
import torch
import pytest

from attlas import Subject
from attlas.models.asking.reading import find_readout, gradients_and_readout, read_attention
from attlas.models.encoding.request import Request
from attlas.models.facts.anatomy import anatomy
from attlas.models.rows import handed, handing
from attlas.models.tap.fused import is_fusible

TEXT = " ".join([subjects.LONG, subjects.SHORT, subjects.OTHER])
NEVER_FUSED = {"gemma2", "gpt_oss"}
ONE_STACK = {
    name
    for name in tiny.FAMILIES
    if name not in {"t5", "mt5", "bart", "mbart", "marian", "pegasus", "t5gemma2", "clip", "vit"}
}


def asked(model, texts=(TEXT,), kind="wordpiece"):
    words = tiny.tokenizer(kind)
    model.resize_token_embeddings(len(words), mean_resizing=False)
    (question,) = Subject(model, words).ask(list(texts), Request())
    return question


@pytest.fixture(params=sorted(ONE_STACK))
def question(request):
    return asked(tiny.FAMILIES[request.param]().model, kind="bpe")


@pytest.fixture
def few_rows(monkeypatch):
    """Slices of at most three rows of these models."""
    monkeypatch.setattr(handed, "SLICE_BYTES", {"cpu": 3 * 4 * 4 * handed.COPIES * 40})


def laid_out(call):
    """The rows of a call as one map, and the gradient on it."""
    every = torch.arange(call.queries)
    query = call.streams[0]
    weights = query.new_zeros(len(query), query.shape[1], call.queries, call.keys)
    gradients = torch.zeros_like(weights)
    for part in call.slices(every):
        assert len(part.rows) < call.queries
        weights[:, :, part.rows, part.keys] = part.weights
        if part.gradient.numel():
            gradients[:, :, part.rows, part.keys] = part.gradient
    return weights, gradients


def test_rows_are_those_of_the_maps(question, few_rows):
    found = handing.hand_over(question, question.subject.sites)
    calls = read_attention(question)
    assert [call.site for call in found.calls] == [call.site for call in calls]
    for own, call in zip(found.calls, calls, strict=True):
        torch.testing.assert_close(laid_out(own)[0], call.weights, atol=1e-5, rtol=1e-5)
    torch.testing.assert_close(found.readout, find_readout(question), atol=1e-6, rtol=1e-5)
    assert handing.rows_agree(question.subject)
