"""Gradient against plain autograd on what transformers' own embeddings give."""

import pytest
import torch
from entered import TABLES, entered
from subjects import TEXTS, ask, subject

import attlas
from attlas.methods import METHODS
from attlas.models.encoding.target import Target

TASK = "sequence classification"


def scores(task, text, method="gradient", **options):
    return torch.from_numpy(attlas.explain(subject(task), text, method, **options).scores)


@pytest.mark.parametrize("task", [task for task in TABLES if task != "sequence to sequence"])
def test_is_the_length_of_the_gradient_of_the_logit(task):
    for text in TEXTS[task]:
        ((_, gradient),) = entered(task, text)
        expected = gradient[0].square().sum(-1).sqrt()
        torch.testing.assert_close(scores(task, text), expected, atol=1e-5, rtol=1e-4)


def test_an_encoder_decoder_has_source_and_prefix():
    task, text = "sequence to sequence", TEXTS["sequence to sequence"][0]
    found = entered(task, text, prefix="Das Haus")
    expected = torch.cat([gradient[0].norm(dim=-1) for _, gradient in found])
    given = scores(task, text, prefix="Das Haus")
    torch.testing.assert_close(given, expected, atol=1e-5, rtol=1e-4)


def test_of_another_target_and_of_a_contrast():
    text = TEXTS[TASK][0]
    ((_, first),), ((_, second),) = (entered(TASK, text, choice) for choice in (2, 0))
    torch.testing.assert_close(scores(TASK, text, target=2), first[0].norm(dim=-1))
    expected = (first - second)[0].norm(dim=-1)
    found = scores(TASK, text, target=2, contrast=0)
    torch.testing.assert_close(found, expected, atol=1e-5, rtol=1e-4)


def test_the_class_token_of_an_image_model_scores_zero():
    found = scores("image classification", TEXTS["image classification"][0])
    assert found[0] == 0 and (found[1:] > 0).all()


def test_one_pass_serves_several_targets():
    task, question = "causal lm", ask("causal lm")
    targets = [Target("one", ((-1, 7),)), Target("two", ((-3, 9),))]
    several = question.asking(targets)
    for name, score in (("gradient", length), ("input_x_gradient", product)):
        found = METHODS[name].score(several, {}).scores
        for row, target in zip(found, targets, strict=True):
            ((place, choice),) = target.picks
            ((vectors, gradient),) = entered(task, TEXTS[task][0], choice, place)
            expected = score(vectors, gradient)[0]
            torch.testing.assert_close(row, expected, atol=1e-5, rtol=1e-4)


def length(_vectors, gradient):
    return gradient.norm(dim=-1)


def product(vectors, gradient):
    return (vectors * gradient).sum(-1)
