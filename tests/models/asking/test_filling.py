"""Texts of several lengths in one batch: every method says of each what it says of it alone."""

from copy import deepcopy
from functools import cache
from itertools import product
from weakref import WeakKeyDictionary

import numpy as np
import pytest
import torch
from subjects import LONG, OTHER, SHORT, TEXTS, few, in_short, subject, takes
from tiny import (
    BERT_SHAPE,
    DISTILBERT_SHAPE,
    GPT2_SHAPE,
    LABELS,
    MODERNBERT,
    RELATIVE,
    TASKS,
    labels,
    text_subject,
)

from attlas.errors import UnsupportedModelError
from attlas.measures.randomisation import cascade, figure
from attlas.measures.sensitivity import sensitivities
from attlas.measures.support.recomputing import Recipe
from attlas.methods import METHODS
from attlas.models.asking import filling
from attlas.models.asking.filling import can_fill, fill, split_by_length
from attlas.models.asking.scores import target_scores
from attlas.models.encoding.request import Request
from attlas.models.subject import Subject
from attlas.removing.removal import removable

TASK = "sequence classification"
FILLED = [name for name in METHODS.names() if METHODS[name].fills]


@pytest.fixture(autouse=True)
def everywhere(monkeypatch):
    """As if a processor gained by it."""
    monkeypatch.setattr(filling, "NEAR", {"cpu": 64})
    filling._takes.clear()
    yield
    filling._takes.clear()


def ask(task):
    return list(subject(task).ask(TEXTS[task], Request()))


def test_near_lengths_are_one_question_and_each_text_keeps_what_is_its_own():
    apart = ask(TASK)
    (together,) = fill(apart)
    assert len(apart) > 1 and len(together) == sum(map(len, apart))
    alone = {text: (q, row) for q in apart for row, text in enumerate(q.order)}
    for row, text in enumerate(together.order):
        question, own = alone[text]
        assert together.targets[row] == question.targets[own]
        assert together.known_scores[row] == question.known_scores[own]
        assert removable(together, row) == removable(question, own)
        whole = question.inputs.tokens[own]
        assert together.inputs.tokens[row][: len(whole)] == whole[:]
    assert len({len(tokens) for tokens in together.inputs.tokens}) == 1


def test_the_targets_are_what_they_were():
    apart = ask(TASK)
    (together,) = fill(apart)
    found = dict(zip(together.order, target_scores(together, "logit").tolist(), strict=True))
    for question in apart:
        expected = target_scores(question, "logit").tolist()
        assert [found[text] for text in question.order] == pytest.approx(expected, rel=1e-5)


FAMILIES = {
    "Bert": BERT_SHAPE,
    "Roberta": BERT_SHAPE,
    "DistilBert": DISTILBERT_SHAPE,
    "Albert": {**BERT_SHAPE, "embedding_size": 16},
    "Deberta": {**BERT_SHAPE, **RELATIVE},
    "MPNet": BERT_SHAPE,
    "GPT2": GPT2_SHAPE,
}


@cache
def family(name):
    """In double precision: what is left are mistakes."""
    shape = {**FAMILIES[name], **labels(*LABELS)}
    model, words = text_subject(name, "ForSequenceClassification", "wordpiece", **shape)
    return Subject(model.double(), words)


@pytest.mark.parametrize(
    ("name", "method"), in_short(product(FAMILIES, FILLED), apart=("Bert", "GPT2", "Deberta"))
)
def test_every_method_says_the_same(name, method):
    recipe = Recipe(METHODS[method], few(method))
    apart = list(family(name).ask([LONG, SHORT, OTHER, "a dog"], Request()))
    try:
        expected = {text: own for each in apart for text, own in recipe.content_scores(each)}
    except UnsupportedModelError:
        return
    (together,) = fill(apart)
    found = dict(recipe.content_scores(together))
    assert found.keys() == expected.keys()
    for text, scores in found.items():
        np.testing.assert_allclose(scores, expected[text], rtol=1e-6, atol=1e-7)


def test_what_would_see_nothing_stays_apart():
    """Attention to near tokens alone leaves those that fill a text up without any to see."""
    shape = {**BERT_SHAPE, "num_hidden_layers": 3, **MODERNBERT, **labels(*LABELS)}
    model, words = text_subject("ModernBert", "ForSequenceClassification", "wordpiece", **shape)
    narrow = Subject(model.double(), words)
    assert not can_fill(next(iter(narrow.ask([LONG], Request()))))


@pytest.mark.parametrize("method", ["raw_attention", "gradient", "attn_lrp"])
def test_so_do_measures_that_ask_again(method):
    recipe, apart = Recipe(METHODS[method], few(method)), ask(TASK)
    together = recipe.fill(apart)
    assert len(together) == 1
    expected, found = (sensitivities(each, recipe, seed=1) for each in (apart, together))
    np.testing.assert_allclose(found, expected, rtol=1e-3)
    before, after = (cascade(each, recipe, seed=1) for each in (apart, together))
    for text, cuts in before.items():
        assert figure(after[text]) == pytest.approx(figure(cuts), abs=0.02, nan_ok=True)


def test_lengths_far_apart_stay_apart(monkeypatch):
    monkeypatch.setattr(filling, "NEAR", {"cpu": 1})
    monkeypatch.setattr(filling, "SMALL", 0)
    apart = ask(TASK)
    assert sorted(len(each) for each in fill(apart)) == sorted(len(each) for each in apart)


def test_unless_they_make_a_small_batch(monkeypatch):
    monkeypatch.setattr(filling, "NEAR", {"cpu": 1})
    apart = ask(TASK)
    rows, longest = sum(map(len, apart)), max(len(each.inputs.tokens[0]) for each in apart)
    monkeypatch.setattr(filling, "SMALL", rows * longest)
    assert [len(each) for each in fill(apart)] == [rows]
    monkeypatch.setattr(filling, "SMALL", rows * longest - 1)
    assert len(fill(apart)) > 1


def test_rows_are_split_into_batches_that_hold_so_many_tokens(monkeypatch):
    """No row twice, none left out; no batch above the limit, and few far lengths in a large one."""
    monkeypatch.setattr(filling, "SMALL", 100)
    lengths = np.random.default_rng(0).integers(1, 60, size=500)
    batches = list(split_by_length(lengths, 16, 400))
    assert sorted(np.concatenate(batches).tolist()) == list(range(500))
    for batch in batches:
        own = lengths[batch]
        assert own.max() * len(own) <= 400
        assert own.max() - own.min() < 16 or own.max() * len(own) <= 100
    assert len(list(split_by_length(np.full(3, 500), 16, 400))) == 3
    assert [len(each) for each in split_by_length(np.array([1, 50]), 16, 400)] == [2]


def test_a_processor_gains_nothing_by_it(monkeypatch):
    monkeypatch.undo()
    apart = ask(TASK)
    assert fill(apart) == apart


@pytest.mark.parametrize("task", [task for task in TASKS if task != TASK])
def test_whatever_is_read_otherwise_stays_apart(task):
    if task in TEXTS and takes("raw_attention", task):
        assert all(can_fill(each) == (each.subject.task.name == TASK) for each in ask(task))


def test_a_model_that_reads_what_fills_a_text_up_stays_apart(monkeypatch):
    monkeypatch.setattr(Subject, "run", _reading_all(Subject.run))
    assert not can_fill(ask(TASK)[0])


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_half_precision_shares_batches_too(dtype):
    loaded = subject(TASK)
    half = Subject(deepcopy(loaded.model).to(dtype), loaded.tokenizer)
    (question,) = half.ask(TEXTS[TASK][:1], Request())
    assert can_fill(question)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(filling, "_takes", WeakKeyDictionary())
        patch.setattr(Subject, "run", _reading_all(Subject.run))
        assert not can_fill(question)


def _reading_all(run):
    """A run of the model that does not hide what is masked."""

    def blind(self, given, *rest):
        return run(self, {**given, "attention_mask": given["attention_mask"] * 0 + 1}, *rest)

    return blind
