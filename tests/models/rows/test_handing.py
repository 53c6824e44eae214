"""Rows computed again, against the whole maps of every family on the interface."""

import pytest
import subjects
import tiny
import torch

from attlas import Subject, edits
from attlas.models.asking.reading import find_readout, gradients_and_readout, read_attention
from attlas.models.encoding.request import Request
from attlas.models.rows import handed, handing
from attlas.models.tap.fused import is_fusible

TEXT = " ".join([subjects.LONG, subjects.SHORT, subjects.OTHER])
NEVER_FUSED = {"Gemma2ForCausalLM", "GptOssForCausalLM"}  # a soft cap, sinks
SEVERAL_STACKS = {"t5", "mt5", "bart", "mbart", "marian", "pegasus", "t5gemma2", "clip"}
ONE_STACK = sorted(set(tiny.FAMILIES) - SEVERAL_STACKS - {"vit"})
ROWS = 3  # in a slice


def asked(model):
    words = tiny.tokenizer("bpe")
    model.resize_token_embeddings(len(words), mean_resizing=False)
    ids = words(TEXT)["input_ids"]
    (question,) = Subject(model, words).ask([ids, ids[::-1]], Request())
    assert len(question) == 2
    with handing._handing(question.subject, (), gradients=False):
        return question  # its masks were tried on a short input


@pytest.fixture(params=ONE_STACK)
def question(request):
    return asked(tiny.FAMILIES[request.param]().model)


@pytest.fixture
def few_rows(monkeypatch):
    """Slices of three rows, and a list of how many rows each call of eager attention had."""
    own, counts = handed.run_eager, []

    def watched(module, query, *args, **kwargs):
        output, weights = own(module, query, *args, **kwargs)
        counts.append(weights.shape[2])
        return output, weights

    monkeypatch.setattr(handed, "run_eager", watched)
    monkeypatch.setattr(handed.HandedCall, "_rows_at_once", lambda call, targets: ROWS)
    return counts


def laid_out(call):
    """The rows of a call as one map, and the gradient on it."""
    query = call.streams[0]
    weights = query.new_zeros(len(query), query.shape[1], call.queries, call.keys)
    gradients = torch.zeros_like(weights)
    for part in call.slices(range(call.queries)):
        weights[:, :, part.rows, part.keys] = part.weights
        if call.gradient is not None:
            gradients[:, :, part.rows, part.keys] = part.gradient
    return weights, gradients


def test_rows_are_those_of_the_maps(question, few_rows):
    found = handing.hand_over(question, question.subject.sites)
    calls = read_attention(question)
    assert [call.site for call in found.calls] == [call.site for call in calls]
    for own, call in zip(found.calls, calls, strict=True):
        torch.testing.assert_close(laid_out(own)[0], call.weights, atol=1e-5, rtol=1e-5)
    torch.testing.assert_close(found.readout, find_readout(question), atol=1e-6, rtol=1e-5)
    assert max(few_rows) == ROWS


def test_gradients_are_those_on_the_maps(question, few_rows):
    sites = question.subject.sites
    found = []
    handing.score_handed(question, sites, lambda each: found.append(each) or each.readout)
    expected = gradients_and_readout(question, sites)
    scale = max(float(gradient.abs().max()) for _, gradient in expected.held)
    for own, (call, gradient) in zip(found[0].calls, expected.held, strict=True):
        # A gradient on a weight that is hidden is of no use: it is multiplied by zero.
        seen = (call.weights > 0) * gradient
        laid = (call.weights > 0) * laid_out(own)[1]
        torch.testing.assert_close(laid, seen, atol=1e-5 * scale, rtol=1e-4)
    torch.testing.assert_close(found[0].readout, expected.readout, atol=1e-6, rtol=1e-5)
    assert max(few_rows) == ROWS


def test_the_gradient_of_fused_attention_is_the_row_times_the_map(question):
    for call in handing.hand_over(question, question.subject.sites).calls:
        row = torch.rand(2, call.queries)
        pulled = call.pull_fused(row)
        if type(question.subject.model).__name__ in NEVER_FUSED:
            assert pulled is None
        else:
            mean = laid_out(call)[0].mean(dim=1)
            torch.testing.assert_close(pulled, torch.einsum("bq,bqk->bk", row, mean))


def test_more_rows_than_a_head_is_wide_are_pulled_through_one_map():
    (question,) = subjects.subject("causal lm").ask([TEXT], Request())
    (call, *_) = handing.hand_over(question, question.subject.sites).calls
    row = torch.rand(2 * call.streams[2].shape[-1] + 1, call.queries)
    torch.testing.assert_close(call.pull_fused(row), row @ laid_out(call)[0][0].mean(dim=0))


@pytest.mark.parametrize("kind", [torch.bfloat16, torch.float16])
def test_half_precision_pulls_a_row_in_two_parts(kind):
    question = asked(tiny.FAMILIES["llama"]().model.to(kind))
    (call, *_) = handing.hand_over(question, question.subject.sites).calls
    mean = laid_out(call)[0].double().mean(dim=1)
    own = torch.full((2, call.queries), 0.5)
    own[:, 0] = 1  # the largest stays, and with it what the row is scaled by
    drawn = torch.rand(own.shape, generator=torch.Generator().manual_seed(0))
    more = drawn * torch.finfo(kind).eps / 5  # one part alone would round this away
    more[:, 0] = 0
    assert is_fusible(call.module)
    # So small, float16 has next to no digits.
    found = call.pull_fused(1e-7 * (own + more)) - call.pull_fused(1e-7 * own)
    expected = torch.einsum("bq,bqk->bk", 1e-7 * more.double(), mean).float()
    size = float(expected.abs().max())
    torch.testing.assert_close(found, expected, atol=3e-2 * size, rtol=0)


def test_a_purely_causal_model_makes_no_mask(few_rows):
    question = asked(tiny.FAMILIES["llama"]().model)
    calls = handing.hand_over(question, question.subject.sites).calls
    assert [call.mask for call in calls] == [None, None]


def test_a_model_on_eager_has_its_own_masks(few_rows):
    model = tiny.FAMILIES["llama"]().model
    model.set_attn_implementation("eager")
    question = asked(model)
    found = handing.hand_over(question, question.subject.sites)
    for own, call in zip(found.calls, read_attention(question), strict=True):
        torch.testing.assert_close(laid_out(own)[0], call.weights, atol=1e-5, rtol=1e-5)


def test_the_rows_of_every_family_agree_with_its_maps(question):
    assert handing.rows_agree(question.subject)


def test_rows_that_are_not_those_of_the_map_are_noticed(monkeypatch):
    subject = asked(tiny.FAMILIES["llama"]().model).subject
    monkeypatch.setattr(handed, "looks_back", lambda *_: False)
    assert not handing.rows_agree(subject)


def test_only_what_is_long_and_has_one_stack_is_for_rows(monkeypatch):
    causal, translator = subjects.ask("causal lm"), subjects.ask("sequence to sequence")
    sites = causal.subject.sites

    def plain(question):
        return handing.replace(question, maps=False)

    assert not handing.is_for_rows(plain(causal), sites)
    monkeypatch.setattr(handing, "LONG", 0)
    assert handing.is_for_rows(plain(causal), sites)
    assert not handing.is_for_rows(causal, sites)
    assert not handing.is_for_rows(plain(translator), translator.subject.sites)
    with causal.subject.tap(edits.uniform()):
        assert not handing.is_for_rows(plain(causal), sites)
    deberta = subjects.small("Deberta", "ForSequenceClassification", **tiny.BERT_SHAPE)
    (question,) = deberta.ask([TEXT], Request())
    assert not handing.is_for_rows(plain(question), deberta.sites)
