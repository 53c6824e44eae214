"""Texts that are tokenized in one call: each is encoded exactly as it is on its own."""

from dataclasses import asdict, replace

import pytest
import tiny
import torch
from subjects import ASKED, TEXTS, small, subject
from tiny_tokenizers import KINDS

from attlas.errors import AttlasError
from attlas.models.encoding import encode_input as module
from attlas.models.encoding.encode_input import encode_input, encode_inputs
from attlas.models.encoding.request import Request

WORDS = ["the film was not good", "A café; naïve\tand 1843 groß!", "a  b\n", "x", "🙂 \u4e02 ok"]
PAIRS = [("the film", "was good"), ("a", "café and more 🙂"), ("who wrote it", "a cat sat")]
HEADS = {
    "wordpiece": ("Bert", "ForSequenceClassification", tiny.BERT_SHAPE),
    "bpe": ("Roberta", "ForSequenceClassification", tiny.BERT_SHAPE),
    "unigram": ("Bert", "ForMaskedLM", tiny.BERT_SHAPE),
    "word_level": ("GPT2", "LMHeadModel", tiny.GPT2_SHAPE),
}


def of_kind(kind):
    family, head, shape = HEADS[kind]
    return small(family, head, kind, **shape)


def one_by_one(model, texts, requests):
    return [encode_input(model, text, its) for text, its in zip(texts, requests, strict=True)]


def together(model, texts, requests):
    """The inputs of each text, taken out of the batches, in the order of the texts."""
    found = {
        place: inputs.rows([row])
        for places, inputs in encode_inputs(model, texts, requests)
        for row, place in enumerate(places)
    }
    return [found[place] for place in range(len(texts))]


def assert_same(found, expected):
    assert found.arguments.keys() == expected.arguments.keys()
    for name, value in expected.arguments.items():
        assert found.arguments[name].dtype == value.dtype
        assert torch.equal(found.arguments[name], value), name
    bare = {"arguments": {}, "tokens": ()}
    assert asdict(replace(found, **bare)) == asdict(replace(expected, **bare))
    for one, other in zip(found.tokens, expected.tokens, strict=True):
        assert one == other and one.to_dict() == other.to_dict()


@pytest.fixture
def calls(monkeypatch):
    """How many texts were encoded on their own."""
    own, real = [], module.encode_input

    def count(facts, text, request):
        own.append(text)
        return real(facts, text, request)

    monkeypatch.setattr(module, "encode_input", count)
    return own


def test_there_is_a_model_for_every_kind_of_tokenizer():
    assert HEADS.keys() == KINDS.keys()


@pytest.mark.parametrize("texts", [WORDS, PAIRS], ids=["strings", "pairs"])
@pytest.mark.parametrize("kind", KINDS)
def test_a_text_among_others_is_encoded_as_it_is_alone(kind, texts, calls):
    model = of_kind(kind)
    requests = [Request()] * len(texts)
    found = together(model, texts, requests)
    assert calls == []
    for one, other in zip(found, one_by_one(model, texts, requests), strict=True):
        assert_same(one, other)


@pytest.mark.parametrize("task", TEXTS)
def test_the_texts_of_every_task_are_encoded_alike(task):
    model = subject(task)
    requests = [Request(**ASKED.get(task, {}))] * len(TEXTS[task])
    for one, other in zip(
        together(model, TEXTS[task], requests),
        one_by_one(model, TEXTS[task], requests),
        strict=True,
    ):
        assert_same(one, other)


def test_only_texts_that_may_be_cut_are_cut():
    model = of_kind("wordpiece")
    texts = ["good " * 90, "the film", "bad " * 80]
    requests = [Request(truncate=True)] * 3
    for one, other in zip(
        together(model, texts, requests), one_by_one(model, texts, requests), strict=True
    ):
        assert_same(one, other)
    assert together(model, texts, requests)[0].notes[0][0].startswith("cut from")


MIXED = {
    "words": ["the film", ["was", "good"]],
    "a pair": ["the film", ("was", "good")],
    "ids": ["the film", [7, 8]],
}


@pytest.mark.parametrize("texts", MIXED.values(), ids=MIXED)
def test_texts_of_several_forms_are_encoded_one_by_one(texts, calls):
    model = of_kind("wordpiece")
    requests = [Request()] * 2
    found = together(model, texts, requests)
    assert len(calls) == 2
    for one, other in zip(found, one_by_one(model, texts, requests), strict=True):
        assert_same(one, other)


def test_a_target_of_several_tokens_is_written_behind_its_own_text():
    model = of_kind("word_level")
    requests = [Request(target="good film"), Request(target="cat")]
    for one, other in zip(
        together(model, WORDS[:2], requests), one_by_one(model, WORDS[:2], requests), strict=True
    ):
        assert_same(one, other)


WRONG = {
    "empty": ["the film", " ", "good " * 90],
    "too long": ["the film", "good " * 90, ""],
    "half a character": ["the film", "a \ud83d", ""],
    "nothing left": ["the film", "\x00\x01", ""],
    "three": [("a", "b"), ("a", "b", "c"), ("a", "")],
}


@pytest.mark.parametrize("texts", WRONG.values(), ids=WRONG)
def test_the_error_is_that_of_the_first_text_with_one(texts):
    model = of_kind("wordpiece")
    requests = [Request()] * len(texts)
    with pytest.raises(AttlasError) as alone:
        one_by_one(model, texts, requests)
    with pytest.raises(type(alone.value)) as found:
        encode_inputs(model, texts, requests)
    assert str(found.value) == str(alone.value)


def test_a_question_needs_its_context_also_in_a_list():
    model = subject("question answering")
    with pytest.raises(AttlasError, match="give a pair"):
        encode_inputs(model, ["who wrote it", "a cat"], [Request()] * 2)
