"""Iterators of texts: explained in order, a chunk at a time, with nothing open in between."""

import numpy as np
import pytest
from subjects import LONG, OTHER, SHORT, subject

import attlas
from attlas.errors import AttlasError, UnknownNameError, UsageError
from attlas.explaining import streams

TEXTS = [LONG, SHORT, OTHER, SHORT, LONG, OTHER, SHORT]


@pytest.fixture
def classifier():
    return subject("sequence classification")


@pytest.fixture
def small_chunks(monkeypatch):
    monkeypatch.setattr(streams, "CHUNK", 3)


class Counted:
    """Texts that know how many of them were taken."""

    def __init__(self, texts):
        self.texts, self.taken = texts, 0

    def __iter__(self):
        for text in self.texts:
            self.taken += 1
            yield text


@pytest.mark.parametrize("method", ["raw_attention", "gradient_attention", None])
@pytest.mark.usefixtures("small_chunks")
def test_a_generator_gives_what_its_list_gives_in_the_same_order(classifier, method):
    streamed = attlas.explain(classifier, iter(TEXTS), method)
    assert iter(streamed) is streamed
    wanted = attlas.explain(classifier, TEXTS, method, maps=False)
    for found, known in zip(streamed, wanted, strict=True):
        assert found.origin == known.origin and found.tokens == known.tokens
        assert (found.target.name, found.notes) == (known.target.name, known.notes)
        np.testing.assert_allclose(found.scores, known.scores, atol=1e-6)
        assert found.maps is None


@pytest.mark.usefixtures("small_chunks")
def test_texts_are_taken_at_most_a_chunk_ahead(classifier):
    texts = Counted(TEXTS * 3)
    streamed = attlas.explain(classifier, iter(texts), "raw_attention")
    assert texts.taken == 0
    for number, _ in enumerate(streamed, 1):
        assert number <= texts.taken <= number + 3
    assert number == texts.taken == len(TEXTS) * 3


def test_the_first_explanation_waits_for_few_texts(classifier):
    texts = Counted(TEXTS * 20)
    streamed = attlas.explain(classifier, iter(texts), "raw_attention", maps=False)
    next(streamed)
    assert texts.taken <= 8 < len(TEXTS) * 20
    assert 1 + sum(1 for _ in streamed) == texts.taken == len(TEXTS) * 20


def test_chunks_double_up_to_a_size(monkeypatch):
    monkeypatch.setattr(streams, "FIRST_CHUNK", 2)
    assert [len(each) for each in streams.growing(iter(range(30)), 6)] == [2, 4, 6, 6, 6, 6]
    assert [len(each) for each in streams.growing(iter(range(3)), 1)] == [1, 1, 1]


def test_no_text_gives_no_explanation(classifier):
    assert list(attlas.explain(classifier, iter(()), "raw_attention")) == []


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ({"method": "raw_atention"}, "unknown method"),
        ({"method": "raw_attention", "layers": 3}, "did you mean 'layer'"),
        ({"method": "raw_attention", "layer": "last"}, "layer of raw_attention is int"),
        ({"method": "raw_attention", "contrast": 0}, "takes no contrast"),
        ({"method": "gradient", "maps": True}, "makes no maps"),
        ({"target": [0, 1]}, "target is a list, .* one target for all"),
        ({"target": np.array([0, 1])}, "target is a list"),
        ({"position": ["was", "sat"]}, "position is a list"),
    ],
)
def test_mistakes_are_told_by_the_call_and_no_text_is_taken(classifier, given, problem):
    texts = Counted(TEXTS)
    with pytest.raises((UsageError, UnknownNameError), match=problem):
        attlas.explain(classifier, iter(texts), **given)
    assert texts.taken == 0


@pytest.mark.usefixtures("small_chunks")
def test_one_target_holds_for_all(classifier):
    streamed = attlas.explain(classifier, iter(TEXTS), "gradient", target=1)
    assert {each.target.name for each in streamed} == {classifier.labels[1]}


@pytest.mark.usefixtures("small_chunks")
def test_maps_licences_and_true_labels_come_along(classifier, monkeypatch):
    monkeypatch.setattr(streams, "CHUNK_WITH_MAPS", 2)
    examples = (attlas.Example(text, "good") for text in TEXTS)
    streamed = [*attlas.explain(classifier, examples, "raw_attention", maps=True, licence=True)]
    assert len(streamed) == len(TEXTS)
    assert all(each.maps and each.licence and each.true_label == "good" for each in streamed)


@pytest.mark.usefixtures("small_chunks")
def test_nothing_is_open_while_the_caller_has_control(classifier):
    before = classifier.model.config._attn_implementation
    texts = iter(TEXTS)
    streamed = attlas.explain(classifier, texts, "gradient_attention")
    first = next(streamed)
    assert classifier.model.config._attn_implementation == before
    again = attlas.explain(classifier, TEXTS[0], "gradient_attention", maps=False)
    np.testing.assert_allclose(first.scores, again.scores, atol=1e-6)
    streamed.close()
    assert classifier.model.config._attn_implementation == before
    assert all(each.requires_grad for each in classifier.model.parameters())
    assert list(texts) == TEXTS[3:]


@pytest.mark.usefixtures("small_chunks")
def test_an_error_names_the_texts_it_is_among(classifier):
    streamed = attlas.explain(classifier, iter([*TEXTS[:4], ""]), "raw_attention")
    for _ in range(3):
        next(streamed)
    with pytest.raises(UsageError) as problem:
        next(streamed)
    assert problem.value.__notes__ == ["text 2 of 2", "among texts 4 to 5 of the iterator"]


@pytest.mark.parametrize("wrong", ["", "good " * 2000])
def test_an_error_names_the_text_of_a_list(classifier, wrong):
    with pytest.raises(AttlasError) as caught:
        attlas.explain(classifier, ["fine", "good", wrong, ""], "raw_attention")
    assert caught.value.__notes__ == ["text 3 of 4"]
    with pytest.raises(AttlasError) as caught:
        attlas.explain(classifier, wrong, "raw_attention")
    assert not hasattr(caught.value, "__notes__")
