"""Readout: the positions a prediction comes from, for heads of many kinds."""

import pytest
import torch
from subjects import ASKED, TEXTS, ask, on_eager, small
from tiny import (
    BART_SHAPE,
    BERT_SHAPE,
    DISTILBERT_SHAPE,
    GPT2_SHAPE,
    LABELS,
    LLAMA_SHAPE,
    MODERNBERT,
    T5_SHAPE,
    UNSCALED_SPREAD,
    XLNET_SHAPE,
    labels,
)

import attlas
from attlas.errors import ModelError
from attlas.models.asking.reading import find_readout
from attlas.models.asking.readout import NEGLIGIBLE, shares
from attlas.models.encoding.request import Request

CLASSES = labels(*LABELS)
TEXT = "The cat sat on"
MODERN = {**BERT_SHAPE, "num_hidden_layers": 3, **MODERNBERT, **CLASSES}
BART = {**BART_SHAPE, **CLASSES}
CLASSIFIERS = {
    "Bert": ("wordpiece", {**BERT_SHAPE, **CLASSES}, 0),
    "Roberta": ("word_level", {**BERT_SHAPE, **CLASSES}, 0),
    "DistilBert": ("wordpiece", {**DISTILBERT_SHAPE, **CLASSES}, 0),
    "Albert": ("wordpiece", {**BERT_SHAPE, **CLASSES, "embedding_size": 16}, 0),
    "Electra": ("wordpiece", {**BERT_SHAPE, **CLASSES, "embedding_size": 16}, 0),
    "ModernBert": ("wordpiece", {**MODERN, "classifier_pooling": "cls"}, 0),
    "GPT2": ("bpe", {**GPT2_SHAPE, **CLASSES}, -1),
    "Llama": ("bpe", {**LLAMA_SHAPE, **CLASSES}, -1),
    "Bart": ("word_level", BART, -1),
}
PLACES = {
    "sequence classification": 0,
    "next sentence": 0,
    "image classification": 0,
    "masked lm": None,
    "token classification": None,
    "causal lm": -1,
    "sequence to sequence": -1,
}


def one_place(weights):
    """The only position with any weight, which has all of it."""
    assert weights.max() == 1 and weights.count_nonzero() == 1
    return int(weights.argmax())


@pytest.mark.parametrize("family", CLASSIFIERS)
def test_classifiers_that_read_one_position(family):
    kind, settings, place = CLASSIFIERS[family]
    asked = small(family, "ForSequenceClassification", kind, **settings)
    (question,) = asked.ask([TEXT], Request())
    (weights,) = find_readout(question)
    assert one_place(weights) == place % len(weights)
    assert len(weights) == len(question.inputs.tokens[0])


@pytest.mark.parametrize("task", PLACES)
def test_tasks_that_read_one_position(task):
    for text in TEXTS[task][:2]:
        question = ask(task, text)
        (weights,) = find_readout(question)
        place = PLACES[task]
        expected = question.targets[0].position if place is None else place % len(weights)
        assert one_place(weights) == expected


def test_t5_is_read_at_its_decoder():
    t5 = small("T5", "ForConditionalGeneration", "unigram", spread=UNSCALED_SPREAD, **T5_SHAPE)
    (question,) = t5.ask([TEXT], Request(prefix=ASKED["sequence to sequence"]["prefix"]))
    (weights,) = find_readout(question)
    assert len(weights) == len(question.inputs.prefix.positions)
    assert one_place(weights) == len(weights) - 1


@pytest.mark.parametrize("seed_text", [TEXT, "The dog lay down"])
def test_a_mean_pool_reads_every_position(seed_text):
    asked = small(
        "ModernBert", "ForSequenceClassification", **{**MODERN, "classifier_pooling": "mean"}
    )
    (question,) = asked.ask([seed_text], Request())
    (weights,) = find_readout(question)
    assert (weights > 0).all()
    assert float(weights.sum()) == pytest.approx(1)
    # The norm that stands last weighs the positions unevenly.
    assert float(weights.max() / weights.min()) > 1.01


def test_a_mean_pool_without_a_norm_reads_every_position_alike():
    asked = small(
        "ModernBert", "ForSequenceClassification", **{**MODERN, "classifier_pooling": "mean"}
    )
    asked.model.model.final_norm = torch.nn.Identity()
    (question,) = asked.ask([TEXT], Request())
    (weights,) = find_readout(question)
    torch.testing.assert_close(weights, torch.full_like(weights, 1 / len(weights)))


def test_a_mean_pool_of_raw_attention_is_the_mean_of_its_rows():
    asked = small(
        "ModernBert", "ForSequenceClassification", **{**MODERN, "classifier_pooling": "mean"}
    )
    asked.model.model.final_norm = torch.nn.Identity()
    found = attlas.explain(asked, TEXT, "raw_attention")
    expected = found.maps["encoder.2"].mean(axis=(0, 1))
    torch.testing.assert_close(torch.from_numpy(found.scores), torch.from_numpy(expected))


def test_a_string_of_tokens_is_read_before_each():
    question = ask("causal lm", target=" the dog lay")
    (weights,) = find_readout(question)
    count = len(question.targets[0].picks)
    assert (weights[-count:] > 0).all() and not weights[:-count].any()
    assert float(weights.sum()) == pytest.approx(1)


def test_an_answer_is_read_at_both_its_ends():
    question = ask("question answering", target="film was")
    (weights,) = find_readout(question)
    (_, first), (_, last) = question.targets[0].picks
    assert weights.nonzero().flatten().tolist() == [first, last]


def test_each_row_of_a_batch_has_its_own():
    asked = small(
        "ModernBert", "ForSequenceClassification", **{**MODERN, "classifier_pooling": "mean"}
    )
    texts = ["the cat sat", "the mat sat"]
    (both,) = asked.ask(texts, Request())
    alone = torch.cat([find_readout(asked.ask([text], Request())[0]) for text in texts])
    torch.testing.assert_close(find_readout(both), alone, atol=1e-5, rtol=1e-4)


def test_shares():
    gradient = torch.tensor([[[3.0, 4.0], [0.0, 0.0], [0.0, 5.0], [NEGLIGIBLE, 0.0]]])
    assert shares(gradient).tolist() == [[0.5, 0.0, 0.5, 0.0]]
    assert shares(gradient.bfloat16()).dtype == torch.float32


def test_a_prediction_that_depends_on_nothing():
    asked = small("Bert", "ForSequenceClassification", **{**BERT_SHAPE, **CLASSES})
    with torch.no_grad():
        asked.model.classifier.weight.zero_()
    with pytest.raises(ModelError, match="does not depend on its layers"):
        attlas.explain(asked, TEXT, "raw_attention")


def test_a_stream_with_tokens_first_is_read_at_the_right_place():
    asked = small("XLNet", "ForSequenceClassification", **XLNET_SHAPE)
    texts = ["the film was not good", "a cat sat on a mat it"]
    found = attlas.explain(asked, texts, "raw_attention")
    assert asked.stream_axes == (1, 0)
    for text, explanation in zip(texts, found, strict=True):
        given = asked.tokenizer(text, return_tensors="pt")
        with torch.no_grad():
            maps = on_eager(asked.model)(**given, output_attentions=True).attentions[-1]
        own = maps if maps.shape[0] == 1 else maps.permute(2, 3, 0, 1)
        expected = own[0].mean(0)[-1]  # XLNet sums up in its last token
        assert explanation.scores == pytest.approx(expected.numpy(), abs=1e-5)
