"""Calibration: tests err as often as they say, and verdicts are right on known truths.

The texts are bags of words in numpy, with scales at which many tokens matter a little, or one
decides. The quick runs look for what is badly wrong; the slow ones hold the figures of the docs.
"""

import numpy as np
import pytest
from scipy.stats import binom
from word_bags import Bag, draw_reached

from attlas.auditing.verdict.verdict import verdict
from attlas.mathematics.significance import per_text_p, sign_flip
from attlas.mathematics.standing import select_texts

LEVELS = (0.01, 0.05, 0.1)
SCALES = (0.5, 4.0)
FAMILIES = {
    "raw_attention": "W",
    "attention_rollout": "W",
    "gradient": "reference",
    "integrated_gradients": "reference",
    "decompx": "P",
}


def null_figures(random, scale, methods, shuffles=20):
    """How good random scores are on one text, and shuffled ones; sufficiency turned round."""
    bag = Bag(random, tokens=int(random.integers(3, 14)), scale=scale)
    scores = random.random((methods + shuffles, len(bag.weights)))
    scores[1] = scores[0] + 0.3 * scores[1]  # two methods that are alike
    comprehensiveness, sufficiency = bag.reached(scores, "mask")
    figures = np.stack([comprehensiveness, -sufficiency])
    return figures[:, :methods], figures[:, methods:]


def no_more_often(found, level):
    """Whether p-values are below the level no more often than it says, but for chance."""
    found = np.asarray(found)
    return (found <= level).sum() <= binom.ppf(0.9995, len(found), level)


def per_text(runs, scale, random):
    found = []
    for _ in range(runs):
        own, shuffled = null_figures(random, scale, methods=2)
        found.append([per_text_p(float(own[i, 0]), shuffled[i], "higher", random) for i in (0, 1)])
    return np.array(found).T


def data_sets(runs, texts, scale, random):
    """For each measure and run: the p-value of one method, and the least adjusted of five."""
    found = []
    for run in range(runs):
        drawn = [null_figures(random, scale, methods=5) for _ in range(texts)]
        gains = np.stack([own - shuffled.mean(axis=1)[:, None] for own, shuffled in drawn], axis=1)
        tests = [sign_flip(gain, seed=run, draws=1999) for gain in gains]
        found.append([(test.p[0], test.adjusted.min()) for test in tests])
    return np.array(found).reshape(runs, 4).T


@pytest.mark.parametrize("scale", SCALES)
def test_per_text_p_values_of_random_scores(scale):
    for found in per_text(400, scale, np.random.default_rng(0)):
        assert all(no_more_often(found, level) for level in LEVELS)


@pytest.mark.parametrize("scale", SCALES)
def test_data_set_p_values_of_random_scores(scale):
    for found in data_sets(40, 20, scale, np.random.default_rng(1)):
        assert all(no_more_often(found, level) for level in LEVELS)


def test_a_level_that_is_not_held_is_seen():
    assert not no_more_often(np.random.default_rng(2).random(400) ** 2, 0.05)


@pytest.mark.slow
@pytest.mark.parametrize("scale", SCALES)
def test_per_text_p_values_of_random_scores_at_length(scale):
    for found in per_text(10_000, scale, np.random.default_rng(3)):
        assert all(no_more_often(found, level) for level in LEVELS)


@pytest.mark.slow
@pytest.mark.parametrize("texts", [20, 40, 150])
@pytest.mark.parametrize("scale", SCALES)
def test_data_set_p_values_of_random_scores_in_500_runs(scale, texts):
    for found in data_sets(500, texts, scale, np.random.default_rng(texts)):
        assert all(no_more_often(found, level) for level in LEVELS)


def noisy(random, noise):
    return lambda bag, _: bag.weights + noise * random.normal(size=len(bag.weights))


def world(noise, texts, seed, reference=0.5, rollout=None):
    """Texts on which the weights are the truth but for so much noise, however they are read."""
    random = np.random.default_rng(seed)
    noises = {
        "raw_attention": noise,
        "attention_rollout": 2 * noise if rollout is None else rollout,
        "gradient": 50.0,
        "integrated_gradients": reference,
        "decompx": 0.1,
    }
    return draw_reached(random, texts, {name: noisy(random, n) for name, n in noises.items()})


def by_mask_alone(seed):
    """The weights know everything under one removal, and nothing under the other."""
    return {"delete": world(50.0, 300, seed)["delete"], "mask": world(0.3, 300, seed)["mask"]}


# What the weights are: the word that is right, the texts by a seed, and how many are drawn.
WORLDS = {
    "the truth": ("supported", lambda seed: world(0.3, 300, seed), 100),
    "nothing": ("not supported", lambda seed: world(50.0, 300, seed), 100),
    "far behind the reference": ("not supported", lambda seed: world(2.0, 300, seed, 0.1), 100),
    "the truth on half the texts": ("not supported", lambda seed: half(seed), 200),
    "the truth by mask, nothing by delete": ("partly", by_mask_alone, 100),
    "the truth, of which rollout says the opposite": ("partly", lambda seed: deceived(seed), 100),
    "the truth, five texts": ("too few texts", lambda seed: world(0.3, 300, seed), 5),
    "nothing, five texts": ("too few texts", lambda seed: world(50.0, 300, seed), 5),
    "as good as a poor reference": ("too few texts", lambda seed: world(1.5, 300, seed, 1.5), 24),
}


def deceived(seed):
    """One reading of the weights knows everything, and another is as far below chance."""
    found = world(0.3, 300, seed)
    for part in (each for parts in found.values() for each in parts):
        part.methods["attention_rollout"][:] = 2 * part.shuffled - part.methods["raw_attention"]
    return found


def half(seed):
    """The weights know everything about every second text, and nothing about the others."""
    found, null = world(0.3, 300, seed, rollout=50.0), world(50.0, 300, seed)
    for removal, parts in found.items():
        for part, other in zip(parts, null[removal], strict=True):
            part.methods["raw_attention"][::2] = other.methods["raw_attention"][::2]
    return found


def words(found, count, runs, seed):
    """The verdicts on texts redrawn from these, with repeats."""
    texts = len(found["mask"][0].shuffled)
    said = []
    for run in range(runs):
        drawn = np.random.default_rng([seed, run]).integers(texts, size=count)
        said.append(verdict(select_texts(found, drawn), FAMILIES, seed=run).word)
    return said


@pytest.mark.parametrize("name", WORLDS)
def test_the_right_word_in_a_few_drawn_data_sets(name):
    right, drawn, count = WORLDS[name]
    said = words(drawn(0), count, 8, 0)
    assert said.count(right) >= 7


@pytest.mark.slow
@pytest.mark.parametrize("name", WORLDS)
def test_the_right_word_in_95_of_100_drawn_data_sets(name):
    right, drawn, count = WORLDS[name]
    for seed in range(2):
        assert words(drawn(seed), count, 100, seed).count(right) >= 95


@pytest.mark.slow
@pytest.mark.parametrize("texts", [20, 60, 200])
def test_weights_that_know_nothing_are_seldom_supported_however_few_texts(texts):
    said = []
    for seed in range(200):
        found = world(50.0, texts, seed, reference=50.0)
        said.append(verdict(found, FAMILIES, seed=seed).word)
    assert said.count("supported") <= binom.ppf(0.999, 200, 0.05)
