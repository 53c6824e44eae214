"""LIME against a regression worked out by hand over the plain model."""

from itertools import product
from math import exp, sqrt

import numpy as np
import pytest
import torch
from subjects import TEXTS, logits, subject

import attlas
from attlas.errors import UsageError

TASK = "sequence classification"


def explain(text, **options):
    return attlas.explain(subject(TASK), text, "lime", **options)


def worked_out(ids, content, choice, width, samples=512):
    """A ridge regression over every set of tokens, by numpy's normal equations."""
    mask = subject(TASK).tokenizer.mask_token_id
    rows, weights, values = [], [], []
    for shown in product([0, 1], repeat=len(content)):
        given = list(ids)
        for place, here in zip(content, shown, strict=True):
            given[place] = ids[place] if here else mask
        distance = 1 - sqrt(sum(shown) / len(shown))
        rows.append([*shown, 1])
        weights.append(exp(-(distance**2) / (2 * width**2)) * samples / 2 ** len(content))
        row = logits(TASK, {"input_ids": torch.tensor([given])})
        values.append(row.softmax(-1)[choice].item())
    design, weight = np.array(rows, dtype=float), np.diag(weights)
    penalty = np.diag([1.0] * len(content) + [0.0])
    slopes = np.linalg.solve(
        design.T @ weight @ design + penalty, design.T @ weight @ np.array(values)
    )
    scores = np.zeros(len(ids))
    scores[list(content)] = slopes[:-1]
    return scores


@pytest.mark.parametrize("count", [1, 2, 5])
@pytest.mark.parametrize("width", [None, 0.25])
def test_short_texts_are_a_regression_over_all_sets(count, width):
    tokenizer = subject(TASK).tokenizer
    inner = tokenizer(TEXTS[TASK][0])["input_ids"][1 : count + 1]
    ids = [tokenizer.cls_token_id, *inner, tokenizer.sep_token_id]
    expected = worked_out(ids, range(1, count + 1), 1, width or 0.75 * sqrt(count))
    found = explain(ids, target=1, width=width)
    np.testing.assert_allclose(found.scores, expected, atol=1e-5)
    assert any(note.startswith(f"{2**count} sets of tokens left unmasked") for note in found.notes)


def test_a_text_with_nothing_to_mask_scores_zero():
    tokenizer = subject(TASK).tokenizer
    assert not explain([tokenizer.cls_token_id, tokenizer.sep_token_id]).scores.any()


def test_drawn_sets_come_near_the_regression_over_all():
    tokenizer = subject(TASK).tokenizer
    ids = tokenizer(TEXTS[TASK][0])["input_ids"]
    content = range(1, len(ids) - 1)
    assert 2 ** len(content) > 400
    expected = explain(ids, target=1).scores
    found = [explain(ids, target=1, samples=400, seed=seed).scores for seed in range(4)]
    assert all(np.corrcoef(each, expected)[0, 1] > 0.97 for each in found)
    assert not np.array_equal(found[0], found[1])
    assert np.abs(np.mean(found, axis=0) - expected).max() < 0.2 * np.abs(expected).max()


def test_the_same_seed_gives_the_same_scores():
    text = "the film was not good but the dog was kind to a cat"
    first, second = (explain(text, seed=3, samples=100).scores for _ in range(2))
    assert np.array_equal(first, second)
    (_, third) = explain([TEXTS[TASK][0], text], seed=3, samples=100)
    np.testing.assert_allclose(third.scores, first, atol=1e-5)


def test_wrong_options_are_named():
    with pytest.raises(UsageError, match="samples of lime must be at least 2, not 0"):
        explain("a cat", samples=0)
    with pytest.raises(UsageError, match=r"width of lime must be above zero, not 0\.0"):
        explain("a cat", width=0)
