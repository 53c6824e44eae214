"""Masks made for a few rows at a time, against the whole ones, on inputs longer than a window."""

from copy import deepcopy

import pytest
import tiny
import torch
from models.rows.test_handing import ONE_STACK, laid_out

import attlas
from attlas import Subject
from attlas.errors import UnsupportedModelError
from attlas.models.encoding.request import Request
from attlas.models.rows import handed, handing, sliced_masks
from attlas.models.rows.sliced_masks import SlicedMask

LONG = 512
MASKED = {"cohere2", "gemma2", "gpt_oss", "mistral", "modernbert"}  # by windows, or always
ROWS = 50  # in a slice


def asked(family, count=LONG):
    """Two texts of so many tokens; the families that have masks place them by rotation."""
    model, words = tiny.FAMILIES[family]().model, deepcopy(tiny.tokenizer("bpe"))
    model.resize_token_embeddings(len(words), mean_resizing=False)
    if family in MASKED:
        model.config.max_position_embeddings = words.model_max_length = LONG
    drawn = torch.randint(6, len(words), (2, count), generator=torch.Generator().manual_seed(0))
    (question,) = Subject(model, words).ask(drawn.tolist(), Request())
    assert len(question.inputs.tokens[0]) == count
    return question


@pytest.fixture(autouse=True)
def few_rows(monkeypatch):
    monkeypatch.setattr(handed.HandedCall, "_rows_at_once", lambda *_: ROWS)


def handed_over(question, *, whole):
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(handing._slices, question.subject.model, not whole)
        return handing.hand_over(question, question.subject.sites)


@pytest.mark.parametrize("family", ONE_STACK)
def test_every_family_takes_masks_by_rows(family):
    subject = asked(family, 8).subject
    assert handing._slices_agree(subject)
    assert subject.model not in handing._slices


@pytest.mark.parametrize("family", sorted(MASKED))
def test_rows_readout_and_outputs_are_those_of_whole_masks(family):
    question = asked(family)
    found, expected = (handed_over(question, whole=whole) for whole in (False, True))
    assert any(isinstance(call.mask, SlicedMask) for call in found.calls)
    for own, other in zip(found.calls, expected.calls, strict=True):
        assert not isinstance(other.mask, SlicedMask)
        torch.testing.assert_close(own.output(), other.output(), atol=1e-5, rtol=1e-5)
        torch.testing.assert_close(laid_out(own)[0], laid_out(other)[0], atol=1e-5, rtol=1e-5)
        if isinstance(own.mask, SlicedMask):
            assert torch.equal(own.mask.whole, other.mask)
    torch.testing.assert_close(found.readout, expected.readout, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("family", sorted(MASKED))
def test_gradients_are_those_of_whole_masks(family):
    question, told = asked(family, 120), []
    for whole in (False, True):
        with pytest.MonkeyPatch.context() as patch:
            patch.setitem(handing._slices, question.subject.model, not whole)
            handing.score_handed(
                question, question.subject.sites, lambda each: told.append(each) or each.readout
            )
    for own, other in zip(told[0].calls, told[1].calls, strict=True):
        scale = max(1.0, float(other.gradient.abs().max()))
        torch.testing.assert_close(own.gradient, other.gradient, atol=1e-5 * scale, rtol=1e-4)


@pytest.mark.parametrize("family", ["mistral", "gpt_oss"])
def test_no_mask_is_made_for_all_rows(family, monkeypatch):
    question, counts = asked(family), []
    own = SlicedMask.rows
    monkeypatch.setattr(
        SlicedMask, "rows", lambda mask, rows: counts.append(len(rows)) or own(mask, rows)
    )
    monkeypatch.setitem(handing._slices, question.subject.model, True)
    for call in handing.hand_over(question, question.subject.sites).calls:
        list(call.slices(range(call.queries)))
    heads = call.streams[0].shape[1]
    assert 0 < max(counts) <= heads * ROWS < LONG


def test_fused_attention_on_a_gpu_takes_the_mask_whole(monkeypatch):
    """It is faster there than slices, and its gradient is what rows are pulled through."""
    question = asked("mistral", 120)
    (call, *_) = handed_over(question, whole=False).calls
    by_rows = call.output()
    monkeypatch.setattr(handed, "FUSED_ON", {"cpu"})
    monkeypatch.setattr(handed.HandedCall, "_mixed", None)
    torch.testing.assert_close(call.output(), by_rows, atol=1e-5, rtol=1e-5)


def test_a_model_that_computes_with_its_mask_gets_it_whole():
    question = asked("mistral", 120)
    model = question.subject.model
    expected = handed_over(question, whole=True)

    def changed(_module, given, named):
        mask = named["attention_mask"]
        return given, {**named, "attention_mask": mask if mask is None else mask[:, :, :, :]}

    hooks = [
        each.register_forward_pre_hook(changed, with_kwargs=True) for each in model.model.layers
    ]
    assert not handing._slices_agree(question.subject)
    found = handing.hand_over(question, question.subject.sites)
    for own, other in zip(found.calls, expected.calls, strict=True):
        torch.testing.assert_close(own.mask, other.mask)
    for each in hooks:
        each.remove()


def test_what_is_left_of_a_stand_in_is_an_error():
    stand_in = torch.empty(1, 1, 3, 3, device="meta")
    with pytest.raises(UnsupportedModelError, match="computes with its mask"):
        sliced_masks.sliced(stand_in)
    assert sliced_masks.sliced(None) is None


def test_scores_are_the_same_either_way(monkeypatch):
    monkeypatch.setattr(handing, "LONG", 0)
    question, scores = asked("gemma2", 200), []
    subject = question.subject
    ids = question.inputs.arguments["input_ids"][0].tolist()
    assert handing.rows_agree(subject)
    for whole in (False, True):
        monkeypatch.setitem(handing._slices, subject.model, not whole)
        scores.append(attlas.explain(subject, ids, "generic_relevance", maps=False).scores)
    torch.testing.assert_close(*map(torch.from_numpy, scores), atol=1e-5, rtol=1e-4)
