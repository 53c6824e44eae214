"""Methods on long inputs, where only rows of attention are computed, against the whole maps."""

from copy import deepcopy

import pytest
import subjects
import tiny
import torch

import attlas
from attlas.models.rows import handed, handing

METHODS = (
    *("raw_attention", "attention_rollout", "gradient_attention", "generic_relevance"),
    "value_weighted_attention",
)
OPTIONS = [
    ("raw_attention", {"layer": None, "fusion": "max"}),
    ("attention_rollout", {"residual": 0.0}),
    ("attention_rollout", {"fusion": "min", "residual": 0.8}),
    ("attention_rollout", {"head": 2}),
    ("attention_rollout", {"discard": 0.3}),
    ("gradient_attention", {"layer": 0, "positive": True}),
    ("gradient_attention", {"layer": None, "times_attention": False}),
    ("generic_relevance", {"start_layer": 1}),
    ("value_weighted_attention", {"layer": None}),
    ("value_weighted_attention", {"residual": True}),
    ("value_weighted_attention", {"rolled_out": True}),
    ("value_weighted_attention", {"rolled_out": True, "residual": True}),
]
LONG = 512
ROWS = 50  # in a slice of so many tokens
LONGEST = {"max_position_embeddings": LONG}
SINKS = {**tiny.LLAMA_SHAPE, "head_dim": 8, **tiny.YARN, **tiny.EXPERTS, **tiny.ALTERNATING}
POOLED = {
    **{**tiny.BERT_SHAPE, **tiny.MODERNBERT, **tiny.labels(*tiny.LABELS)},
    **{"classifier_pooling": "mean", "global_attn_every_n_layers": 2},
}
SUBJECTS = {
    "llama": ("Llama", "ForCausalLM", {**tiny.LLAMA_SHAPE, **LONGEST}),
    "bert": (
        *("Bert", "ForSequenceClassification"),
        {**tiny.BERT_SHAPE, **LONGEST, **tiny.labels(*tiny.LABELS)},
    ),
    "pooled": ("ModernBert", "ForSequenceClassification", {**POOLED, **LONGEST}),
    "sinks": ("GptOss", "ForCausalLM", {**SINKS, **LONGEST}),
}


@pytest.fixture(scope="module", params=SUBJECTS)
def subject(request):
    return long_subject(request.param)


def long_subject(name):
    family, head, settings = SUBJECTS[name]
    found = subjects.small(family, head, **settings)
    words = deepcopy(found.tokenizer)  # other tests share it
    words.model_max_length = LONG
    return attlas.Subject(found.model, words)


def text(subject, length, seed=0):
    generator = torch.Generator().manual_seed(seed)
    return torch.randint(6, len(subject.tokenizer), (length,), generator=generator).tolist()


@pytest.fixture
def in_rows(monkeypatch):
    """A function that lets a call use rows; it must, and with no map of all queries."""
    seen = []
    own = handed.run_eager

    def watched(module, query, *args, **kwargs):
        seen.append(query.shape[2])
        return own(module, query, *args, **kwargs)

    def call(work):
        with monkeypatch.context() as patch:
            patch.setattr(handing, "LONG", 0)
            patch.setattr(handing, "rows_agree", lambda _: True)  # it spells out a short input
            patch.setattr(handed, "run_eager", watched)
            patch.setattr(handed.HandedCall, "_rows_at_once", lambda *_: ROWS)
            result = work()
        assert seen
        assert max(seen) <= ROWS
        return result

    return call


def assert_same(found, expected):
    scale = max(1.0, float(abs(expected).max()))
    torch.testing.assert_close(
        torch.as_tensor(found), torch.as_tensor(expected), atol=1e-5 * scale, rtol=1e-4
    )


@pytest.mark.parametrize("method", METHODS)
def test_rows_give_the_scores_of_the_maps(subject, method, in_rows):
    given = text(subject, LONG)
    expected = attlas.explain(subject, given, method, maps=False).scores
    found = in_rows(lambda: attlas.explain(subject, given, method, maps=False).scores)
    assert found.any()
    assert_same(found, expected)


@pytest.mark.parametrize("method", METHODS)
def test_several_texts_at_once(subject, method, in_rows):
    given = [text(subject, 120, seed) for seed in range(3)]
    expected = attlas.explain(subject, given, method, maps=False)
    found = in_rows(lambda: attlas.explain(subject, given, method, maps=False))
    for one, other in zip(found, expected, strict=True):
        assert_same(one.scores, other.scores)


@pytest.mark.parametrize(("method", "options"), OPTIONS)
def test_every_option_means_the_same(method, options, monkeypatch):
    subject = long_subject("llama")
    given = text(subject, 90)
    expected = attlas.explain(subject, given, method, maps=False, **options).scores
    monkeypatch.setattr(handing, "LONG", 0)
    found = attlas.explain(subject, given, method, maps=False, **options).scores
    assert_same(found, expected)


@pytest.mark.parametrize("options", [{"layer_norm": True}, {"rolled_out": True, "residual": True}])
def test_norms_behind_attention_and_what_is_told_of_each_layer(options, in_rows):
    subject = long_subject("bert")
    given = text(subject, 120)

    def explain():
        return attlas.explain(subject, given, "value_weighted_attention", maps=False, **options)

    expected, found = explain(), in_rows(explain)
    assert_same(found.scores, expected.scores)
    assert found.notes == expected.notes
    assert any("mixing ratio" in note for note in found.notes)


@pytest.mark.parametrize("name", ["llama", "sinks"])
@pytest.mark.parametrize("method", METHODS)
def test_every_token_that_was_written_has_its_row(name, method, in_rows):
    subject = long_subject(name)
    given = text(subject, 100)

    def scores():
        return attlas.explain_generation(subject, given, method, max_new_tokens=6).scores

    expected = scores()
    found = in_rows(scores)
    assert len(found) > 1
    assert_same(found, expected)


def test_the_gradient_of_fused_attention_rolls_out_the_same(monkeypatch):
    subject = long_subject("llama")
    given = text(subject, LONG)
    expected = attlas.explain(subject, given, "attention_rollout", maps=False).scores
    monkeypatch.setattr(handing, "LONG", 0)
    monkeypatch.setattr(handed, "FUSED_ON", {"cpu"})
    monkeypatch.setattr(handed.HandedCall, "slices", None)
    monkeypatch.setattr(handing, "rows_agree", lambda _: True)
    found = attlas.explain(subject, given, "attention_rollout", maps=False).scores
    assert_same(found, expected)


def test_maps_that_are_asked_for_are_made(monkeypatch):
    monkeypatch.setattr(handing, "LONG", 0)
    subject = long_subject("bert")
    for method in METHODS:
        assert attlas.explain(subject, text(subject, 30), method, maps=True).maps is not None
