"""Every encoder and every attention against its definition, written out in numpy."""

import numpy as np
import pytest
import torch
from recurrent_by_hand import encoded, numbers, scores, softmax

from attlas.models.recurrent.classifier import RecurrentForSequenceClassification
from attlas.models.recurrent.configuration import RecurrentConfig

PAD, START, END = 0, 2, 3
TEXT = [START, 5, 9, 6, 6, 8, END]
OTHER = [START, 7, 4, END]
ENCODERS = ("bilstm", "bigru", "cnn", "average", "none")


def built(**parts):
    """A small model with random weights in double precision."""
    sizes = {"vocab_size": 12, "vector_size": 8, "num_labels": 3, "kernels": (1, 3)}
    torch.manual_seed(len(str(parts)))
    model = RecurrentForSequenceClassification(RecurrentConfig(**{**sizes, **parts}))
    return model.double().eval()


def vectors_of(model, ids):
    return model.vectors.weight.detach().numpy()[ids]


def output(model, pooled, question=None):
    own = numbers(model.decoder)
    if question is not None:
        inner = own["of_text.weight"] @ pooled + own["of_text.bias"]
        inner = inner + own["of_question.weight"] @ question + own["of_question.bias"]
        pooled = np.tanh(inner)
    return own["output.weight"] @ pooled + own["output.bias"]


@pytest.mark.parametrize("encoder", ENCODERS)
@pytest.mark.parametrize("attention", ["additive", "scaled_dot", "uniform"])
def test_a_text_is_read_as_defined(encoder, attention):
    model = built(encoder=encoder, attention=attention, hidden_size=8)
    states, _ = encoded(encoder, model.encoder, vectors_of(model, TEXT))
    inside = slice(1, -1)  # the start and the end get no attention
    weights = softmax(scores(attention, model.attention, states)[inside])
    ids = torch.tensor([TEXT])
    found = model.encode(ids)
    np.testing.assert_allclose(found.hidden[0].detach(), states, rtol=0, atol=1e-12)
    expected = np.concatenate([[0], weights, [0]])
    np.testing.assert_allclose(model.weigh(found)[0].detach(), expected, rtol=0, atol=1e-12)
    np.testing.assert_allclose(
        model(ids).logits[0].detach(), output(model, weights @ states[inside]), atol=1e-12
    )


@pytest.mark.parametrize("encoder", ENCODERS)
@pytest.mark.parametrize("attention", ["additive", "scaled_dot"])
@pytest.mark.parametrize("reads", ["question", "pair"])
def test_two_texts_are_read_as_defined(encoder, attention, reads):
    model = built(encoder=encoder, attention=attention, hidden_size=8, reads=reads)
    first, second = (OTHER, TEXT) if reads == "question" else (TEXT, OTHER)
    ids = torch.tensor([first + second])
    types = torch.tensor([[0] * len(first) + [1] * len(second)])
    states, _ = encoded(encoder, model.encoder, vectors_of(model, TEXT))
    _, question = encoded(encoder, model.question_encoder, vectors_of(model, OTHER))
    weights = softmax(scores(attention, model.attention, states, question)[1:-1])
    start = len(OTHER) if reads == "question" else 0
    expected = np.zeros(ids.shape[1])
    expected[start + 1 : start + len(TEXT) - 1] = weights
    found = model.weigh(model.encode(ids, token_type_ids=types))[0].detach()
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-12)
    np.testing.assert_allclose(
        model(ids, token_type_ids=types).logits[0].detach(),
        output(model, weights @ states[1:-1], question),
        atol=1e-12,
    )


@pytest.mark.parametrize("encoder", ENCODERS)
def test_a_hierarchical_model_pools_words_and_then_sentences(encoder):
    stop = 5
    words = [[4, 9, stop], [7, stop, stop], [6, 8, 10]]  # a row of signs ends one sentence
    ids = [START, *words[0], *words[1], *words[2], END]
    model = built(encoder=encoder, hidden_size=8, sentences=(stop,))
    pooled = []
    for sentence in words:
        states, _ = encoded(encoder, model.encoder.of_words, vectors_of(model, sentence))
        own = scores("additive", model.encoder.word_pooling[0].attention, states)
        pooled.append(softmax(own) @ states)
    sentences, _ = encoded(encoder, model.encoder.of_sentences, np.array(pooled))
    weights = softmax(scores("additive", model.attention, sentences))
    found = model.weigh(model.encode(torch.tensor([ids])))[0].detach()
    np.testing.assert_allclose(found[[3, 6, 9]], weights, atol=1e-12)
    assert found.sum() == pytest.approx(1) and int((found > 0).sum()) == 3
    np.testing.assert_allclose(
        model(torch.tensor([ids])).logits[0].detach(),
        output(model, weights @ sentences),
        atol=1e-12,
    )


def test_two_labels_are_one_number_and_its_sigmoid():
    model = built(num_labels=2, hidden_size=8)
    logits = model(torch.tensor([TEXT])).logits[0]
    number = logits[1] - logits[0]
    assert logits.softmax(-1)[1].item() == pytest.approx(torch.sigmoid(number).item(), abs=1e-12)
    assert logits[0] == -logits[1]
    assert model.decoder.output.out_features == 1


def test_where_no_word_is_left_nothing_is_pooled():
    model = built(hidden_size=8)
    ids = torch.tensor([[START, END]])
    states = model.encode(ids)
    assert model.weigh(states).tolist() == [[0.0, 0.0]]
    np.testing.assert_allclose(
        model(ids).logits[0].detach(), numbers(model.decoder)["output.bias"], atol=1e-12
    )
