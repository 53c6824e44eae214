"""Random scores: even, seeded, and the same whoever else is in the batch."""

import numpy as np
import pytest
from subjects import TEXTS, subject

import attlas

TASK = "sequence classification"


def scores(text, **options):
    return attlas.explain(subject(TASK), text, "random_scores", **options).scores


def test_the_same_seed_gives_the_same_scores():
    assert np.array_equal(scores("the cat sat"), scores("the cat sat"))
    assert np.array_equal(scores("the cat sat", seed=5), scores("the cat sat", seed=5))


def test_another_seed_or_text_gives_others():
    first = scores("the cat sat")
    assert not np.array_equal(first, scores("the cat sat", seed=1))
    other = scores("the dog sat")
    assert not np.array_equal(first[: len(other)], other[: len(first)])


def test_a_batch_gives_what_each_text_gives_alone():
    together = scores_of_many(TEXTS[TASK])
    assert all(
        np.array_equal(many, scores(text)) for many, text in zip(together, TEXTS[TASK], strict=True)
    )


def scores_of_many(texts):
    return [each.scores for each in attlas.explain(subject(TASK), texts, "random_scores")]


def test_are_even_between_zero_and_one():
    drawn = np.concatenate([scores("the film was not good", seed=seed) for seed in range(200)])
    assert drawn.min() >= 0 and drawn.max() < 1
    counts, _ = np.histogram(drawn, bins=10, range=(0, 1))
    assert counts.min() > 0.8 * len(drawn) / 10
    assert np.corrcoef(drawn[:-1], drawn[1:])[0, 1] == pytest.approx(0, abs=0.1)


def test_says_that_it_says_nothing():
    found = attlas.explain(subject(TASK), "the cat sat", "random_scores")
    assert found.origin.reading == "Nothing: these numbers are random."
    assert found.maps is None
