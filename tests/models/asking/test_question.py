"""Question: attention folded as it passes, one layer at a time; what is not read passes through."""

import gc
import weakref
from dataclasses import replace

import numpy as np
import pytest
import torch
from subjects import ASKED, TEXTS, ask, few, in_short, small, subject, takes
from tiny import BART_SHAPE, BERT_SHAPE, LLAMA_SHAPE, TASKS

import attlas
from attlas.methods import METHODS
from attlas.methods.support.token_rows import (
    fuse_heads,
    read_row,
    reading_kinds,
    spread_over_tokens,
)
from attlas.models.asking.reading import (
    attention_gradients,
    find_readout,
    fold_attention,
    gradients_and_readout,
    read_attention,
)
from attlas.models.encoding.request import Request
from attlas.models.tap import opening

DEEP = {
    "Bert": ("ForMaskedLM", "wordpiece", {**BERT_SHAPE, "num_hidden_layers": 5}),
    "Llama": ("ForCausalLM", "bpe", {**LLAMA_SHAPE, "num_hidden_layers": 5}),
    "Bart": (
        "ForConditionalGeneration",
        "word_level",
        {**BART_SHAPE, "encoder_layers": 4, "decoder_layers": 3},
    ),
}
# BART's decoder layer keeps its own attention while it computes the other one.
ONE_LAYER = {"Bert": 1, "Llama": 1, "Bart": 2}
ASK = {
    "Bert": ("the [MASK] sat", Request()),
    "Llama": ("the cat sat", Request()),
    "Bart": ("the cat sat", Request(prefix="a mat")),
}


def deep(family):
    head, kind, settings = DEEP[family]
    asked = small(family, head, kind, **settings)
    text, request = ASK[family]
    (question,) = asked.ask([text], request)
    return question


class Spy:
    """Looks at every attention that is spelled out: how many, and how many are still there."""

    def __init__(self, monkeypatch):
        self.weights, self.most_alive = [], 0
        self._run_eager = opening.run_eager
        monkeypatch.setattr(opening, "run_eager", self)

    def __call__(self, *args, **kwargs):
        output, weights = self._run_eager(*args, **kwargs)
        self.weights.append(weakref.ref(weights))
        self.most_alive = max(self.most_alive, self.alive())
        assert not weights.requires_grad, "a graph would hold it"
        return output, weights

    def alive(self):
        gc.collect()
        return sum(each() is not None for each in self.weights)


@pytest.fixture
def spy(monkeypatch):
    return lambda: Spy(monkeypatch)


@pytest.mark.parametrize("family", DEEP)
def test_rollout_holds_one_layer_at_a_time(family, spy):
    question = deep(family)
    seen = spy()
    METHODS["attention_rollout"].score(question, {})
    assert len(seen.weights) == len(question.subject.sites)
    assert seen.most_alive == ONE_LAYER[family]
    assert seen.alive() == 0


@pytest.mark.parametrize("family", DEEP)
@pytest.mark.parametrize("layer", [-1, None])
def test_raw_attention_without_maps_spells_out_what_it_reads(family, layer, spy):
    question = deep(family)
    layers = 1 if layer == -1 else {"Bert": 5, "Llama": 5, "Bart": 3}[family]
    kinds = 2 if family == "Bart" else 1
    seen = spy()
    METHODS["raw_attention"].score(without_maps(question), {"layer": layer})
    assert len(seen.weights) == layers * kinds
    assert seen.most_alive == ONE_LAYER[family]


def without_maps(question):
    return replace(question, maps=False)


@pytest.mark.parametrize("family", DEEP)
def test_the_gradient_at_one_layer_spells_out_that_layer_alone(family, monkeypatch):
    question = without_maps(deep(family))
    called, run_eager = [], opening.run_eager
    monkeypatch.setattr(
        opening, "run_eager", lambda *a, **k: called.append(1) or run_eager(*a, **k)
    )
    METHODS["gradient_attention"].score(question, {})
    assert len(called) == (2 if family == "Bart" else 1)


@pytest.mark.parametrize("family", DEEP)
def test_the_readout_spells_nothing_out(family, spy):
    question = deep(family)
    seen = spy()
    found = find_readout(question)
    assert not seen.weights
    torch.testing.assert_close(found.sum(-1), torch.ones(1))


@pytest.mark.parametrize("task", TASKS)
def test_the_readout_is_the_same_from_every_pass(task):
    question = ask(task)
    alone = find_readout(question)
    for found in (
        fold_attention(question, lambda _: None).readout,
        fold_attention(question, lambda _: None, question.subject.sites[:1]).readout,
        gradients_and_readout(question).readout,
        gradients_and_readout(question, question.subject.sites[-1:]).readout,
    ):
        torch.testing.assert_close(found, alone, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("task", TASKS)
def test_a_fold_sees_what_is_there_in_the_order_of_call(task):
    question = ask(task)
    whole = read_attention(question)
    folded = fold_attention(question, lambda call: (call.site, call.weights.sum(dim=-1)))
    assert [site for site, _ in folded.held] == [call.site for call in whole]
    for (_, found), call in zip(folded.held, whole, strict=True):
        assert torch.equal(found, call.weights.sum(dim=-1))


@pytest.mark.parametrize("task", TASKS)
def test_gradients_at_some_sites_are_those_among_all(task):
    question = ask(task)
    whole = {call.site: gradient for call, gradient in attention_gradients(question, "logit")}
    for site in question.subject.sites:
        ((call, gradient),) = attention_gradients(question, "logit", sites=[site])
        assert call.site == site
        scale = float(whole[site].abs().max())
        torch.testing.assert_close(gradient, whole[site], rtol=1e-3, atol=1e-4 * scale + 1e-8)


# Scores


@pytest.mark.parametrize(
    ("task", "method"), in_short((t, m) for t in TASKS for m in METHODS.names() if takes(m, t))
)
def test_maps_make_no_difference_to_scores(task, method):
    def explained(maps):
        asked = {**few(method), **ASKED.get(task, {}), "maps": maps}
        return attlas.explain(subject(task), TEXTS[task][:2], method, **asked)

    usual, left = explained(None), explained(False)
    held = explained(True) if METHODS[method].maps else usual
    for first, second, third in zip(held, left, usual, strict=True):
        size = np.abs(first.scores).max()
        # With maps, attention is spelled out that is fused without: they round otherwise.
        np.testing.assert_allclose(first.scores, second.scores, rtol=0, atol=1e-5 * size)
        assert np.array_equal(first.scores, third.scores)
        assert second.maps is None
        assert (first.maps is None) == (third.maps is None) == (METHODS[method].maps is None)


@pytest.mark.parametrize("layer", [0, -1, None])
@pytest.mark.parametrize("task", TASKS)
def test_scores_are_those_of_all_attention_held_at_once(task, layer):
    question = ask(task)
    readout, calls = find_readout(question), read_attention(question)
    rows = []
    for kind in reading_kinds(question.inputs, [call.site for call in calls]):
        layers = [fuse_heads(call.weights) for call in calls if call.site.kind == kind]
        chosen = torch.stack(layers if layer is None else [layers[layer]]).mean(0)
        rows.append((kind, read_row(chosen, readout)))
    expected = spread_over_tokens(question.inputs, rows)
    found = METHODS["raw_attention"].score(question, {"layer": layer})
    torch.testing.assert_close(found.scores, expected, rtol=1e-4, atol=1e-5)
    assert all(
        torch.equal(weights, call.weights)
        for (_, weights), call in zip(found.maps, calls, strict=True)
    )


def test_a_large_batch_is_asked_for_gradients_in_parts(monkeypatch):
    from attlas.models.asking import open_model as room

    texts = ["the cat sat", "the mat sat", "the rat sat", "the bat sat", "the hat sat"]
    asked = subject("sequence classification")
    expected = attlas.explain(asked, texts, "gradient_attention", layer=None, maps=False)
    (question,) = asked.ask(texts)
    bytes_a_row = 4 * sum(s.heads for s in asked.sites) * len(question.inputs.tokens[0]) ** 2
    monkeypatch.setattr(room, "MAP_BYTES", 2 * bytes_a_row)
    assert [len(part) for part in question.batches_holding(asked.sites)] == [2, 2, 1]
    scored = METHODS["gradient_attention"].score(without_maps(question), {"layer": None})
    for row, found in zip(scored.scores, expected, strict=True):
        np.testing.assert_allclose(row.numpy(), found.scores, rtol=1e-4, atol=1e-5)


def test_rows_keep_what_was_asked():
    question = without_maps(ask("causal lm"))
    assert question.rows([0, 0]).maps is False
    assert len(question.rows([0, 0])) == 2
