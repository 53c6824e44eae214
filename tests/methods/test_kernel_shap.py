"""Kernel SHAP against Shapley values by brute force over the plain model."""

from itertools import permutations

import numpy as np
import pytest
import torch
from subjects import TEXTS, logits, plain, subject

import attlas
from attlas.errors import UsageError

TASK = "sequence classification"


def explain(task, text, **options):
    return attlas.explain(subject(task), text, "kernel_shap", **options)


def brute_force(ids, content, choice):
    """Shapley values of p(choice): each token's gain on average over all orders of unmasking."""
    mask, known = subject(TASK).tokenizer.mask_token_id, {}

    def value(shown):
        if shown not in known:
            given = [each if i in shown or i not in content else mask for i, each in enumerate(ids)]
            row = logits(TASK, {"input_ids": torch.tensor([given])})
            known[shown] = row.softmax(-1)[choice].item()
        return known[shown]

    total, orders = np.zeros(len(ids)), list(permutations(content))
    for order in orders:
        for place, token in enumerate(order):
            before = frozenset(order[:place])
            total[token] += value(before | {token}) - value(before)
    return total / len(orders)


@pytest.mark.parametrize("count", [0, 1, 2, 5])
def test_short_texts_have_exact_shapley_values(count):
    tokenizer = subject(TASK).tokenizer
    inner = tokenizer(TEXTS[TASK][0])["input_ids"][1 : count + 1]
    ids = [tokenizer.cls_token_id, *inner, tokenizer.sep_token_id]
    found = explain(TASK, ids, target=1)
    expected = brute_force(ids, range(1, count + 1), 1)
    np.testing.assert_allclose(found.scores, expected, atol=1e-5)
    assert f"exact, from all {2**count} sets of tokens left unmasked" in found.notes


def test_longer_texts_are_estimated_and_add_up():
    tokenizer = subject(TASK).tokenizer
    ids = tokenizer("the film was not good but the dog was kind to a cat")["input_ids"]
    empty = [ids[0], *[tokenizer.mask_token_id] * (len(ids) - 2), ids[-1]]
    whole, nothing = (
        logits(TASK, {"input_ids": torch.tensor([each])}).softmax(-1)[2] for each in (ids, empty)
    )
    found, again, other = (
        explain(TASK, ids, target=2, seed=seed, samples=200) for seed in (0, 0, 1)
    )
    assert "estimated from 202 sets of tokens left unmasked" in found.notes
    assert found.scores.sum() == pytest.approx((whole - nothing).item(), abs=1e-5)
    assert np.array_equal(found.scores, again.scores)
    assert not np.array_equal(found.scores, other.scores)
    assert np.corrcoef(found.scores, other.scores)[0, 1] > 0.9


def test_what_the_model_does_not_look_at_scores_zero():
    """Nothing behind the target's own place of a causal model matters to it."""
    task = "causal lm"
    found = attlas.explain_generation(subject(task), "a cat sat", "kernel_shap", output=" on it")
    rows, columns = np.nonzero(found.scores)
    assert len(rows) and (columns < len(found.tokens) - len(found.outputs) + rows).all()


def test_patches():
    picture = TEXTS["image classification"][0]
    found = explain("image classification", picture, target=1, samples=64)
    pixels = dict(subject("image classification").tokenizer(images=picture, return_tensors="pt"))
    with torch.no_grad():
        whole, blank = (
            plain("image classification")(pixel_values=each).logits.softmax(-1)[0, 1]
            for each in (pixels["pixel_values"], torch.zeros_like(pixels["pixel_values"]))
        )
    assert found.scores.sum() == pytest.approx((whole - blank).item(), abs=1e-5)
    assert found.scores[0] == 0


def test_too_few_samples_are_named():
    with pytest.raises(UsageError, match="samples of kernel_shap must be at least 2, not 1"):
        explain(TASK, "a cat", samples=1)
