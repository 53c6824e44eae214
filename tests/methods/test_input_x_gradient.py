"""Input × gradient against plain autograd, and where the answer is known."""

import pytest
import torch
from entered import TABLES, entered
from subjects import TEXTS, subject
from tiny import subject_parts

import attlas

TASK = "sequence classification"


def scores(task, text, **options):
    found = attlas.explain(subject(task), text, "input_x_gradient", **options)
    return torch.from_numpy(found.scores)


def products(pairs):
    return torch.cat([(vectors * gradient)[0].sum(-1) for vectors, gradient in pairs])


@pytest.mark.parametrize("task", [task for task in TABLES if task != "sequence to sequence"])
def test_is_the_embedding_times_the_gradient_of_the_logit(task):
    for text in TEXTS[task]:
        expected = products(entered(task, text))
        torch.testing.assert_close(scores(task, text), expected, atol=1e-5, rtol=1e-4)


def test_an_encoder_decoder_has_source_and_prefix():
    task, text = "sequence to sequence", TEXTS["sequence to sequence"][0]
    expected = products(entered(task, text, prefix="Das Haus"))
    given = scores(task, text, prefix="Das Haus")
    torch.testing.assert_close(given, expected, atol=1e-5, rtol=1e-4)


def test_a_contrast_is_a_difference():
    text = TEXTS[TASK][0]
    first, second, both = (
        scores(TASK, text, **asked)
        for asked in ({"target": 2}, {"target": 0}, {"target": 2, "contrast": 0})
    )
    torch.testing.assert_close(both, first - second, atol=1e-5, rtol=1e-4)


def test_vectors_whose_length_does_not_count_score_zero():
    """A norm behind the embedding undoes its length: the gradient stands upright on it."""
    model, tokenizer = subject_parts(TASK)
    with torch.no_grad():
        model.bert.embeddings.position_embeddings.weight.zero_()
        model.bert.embeddings.token_type_embeddings.weight.zero_()
    found = attlas.explain(attlas.Subject(model, tokenizer), TEXTS[TASK][0], "input_x_gradient")
    assert abs(found.scores).max() < 1e-5 < abs(scores(TASK, TEXTS[TASK][0])).max()
