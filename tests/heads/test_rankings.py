"""Each ranking of heads against its definition, on models opened by transformers alone."""

import re
from pathlib import Path

import numpy as np
import pytest
import subjects
import torch
from subjects import LONG, OTHER, SHORT

import attlas
from attlas.data.generated import recall
from attlas.heads.rankings import RANKINGS

TASK = "sequence classification"
DATA = [(LONG, 0), (SHORT, 1), (OTHER, 0), ("the dog was not good", 1)]
PAGE = Path(__file__).parents[2] / "docs" / "heads.md"


def test_every_ranking_has_its_test_and_its_row_on_the_page():
    names = sorted(RANKINGS.names(), key=len, reverse=True)  # the longest that a test begins with
    tests = re.findall(rf"^def test_({'|'.join(names)})_", Path(__file__).read_text(), re.M)
    rows = re.findall(r"^\| `(\w+)` \|", PAGE.read_text(), re.M)
    assert set(tests) == set(names) == {*rows} - {"by"}
    assert attlas.list_rankings() == RANKINGS.names()


def test_each_record_is_whole():
    for each in RANKINGS:
        assert each.reading.endswith(".") and each.score_heads.__doc__
        assert each.paper.startswith("arXiv:") or each.control


@pytest.fixture(scope="module")
def subject():
    return subjects.subject(TASK)


def importance(subject, by, **options):
    return attlas.head_importance(subject, DATA, by, **options)


def plain_pass(text, label):
    """The attention of the plain model, and the gradient of its own loss on it."""
    model = subjects.plain(TASK)
    given = subjects.arguments(TASK, text)
    output = model(**given, labels=torch.tensor([label]), output_attentions=True)
    return output.attentions, torch.autograd.grad(output.loss, output.attentions)


def by_definition(reduce):
    """The mean over texts of what `reduce` makes of each head's attention and gradient."""
    rows = []
    for text, label in DATA:
        layers = zip(*plain_pass(text, label), strict=True)
        rows.append([reduce(a[0, h], g[0, h]) for a, g in layers for h in range(a.shape[1])])
    return torch.tensor(rows, dtype=torch.float64).mean(dim=0).numpy()


def test_taylor_is_attention_times_the_gradient_of_the_loss(subject):
    expected = by_definition(lambda a, g: (a * g).sum().abs().item())
    assert expected.max() > 1e-4
    np.testing.assert_allclose(importance(subject, "taylor").mean, expected, rtol=1e-3, atol=1e-8)


def test_taylor_michel_takes_sizes_token_by_token_and_layers_of_length_one(subject):
    found = importance(subject, "taylor_michel")
    expected = by_definition(lambda a, g: (a * g).sum(dim=-1).abs().sum().item()).reshape(2, -1)
    expected /= np.sqrt((expected**2).sum(axis=1, keepdims=True))
    np.testing.assert_allclose(found.mean, expected.ravel(), rtol=1e-3, atol=1e-8)
    lengths = np.linalg.norm(found.mean.reshape(2, -1), axis=1)
    np.testing.assert_allclose(lengths, 1, rtol=1e-6)


def test_attention_is_the_mean_of_the_row_maxima(subject):
    expected = by_definition(lambda a, _: a.detach().numpy().max(axis=-1).mean())
    np.testing.assert_allclose(importance(subject, "attention").mean, expected, rtol=1e-5)


def test_attattr_is_the_mean_of_the_largest_attributions(subject):
    rows = []
    for text, label in DATA:
        maps = attlas.explain(subject, text, "attattr", target=label, maps=True, steps=5).maps
        rows.append([head.max() for layer in maps.weights for head in layer])
    found = importance(subject, "attattr", steps=5)
    np.testing.assert_allclose(found.mean, np.mean(rows, axis=0), rtol=1e-4, atol=1e-8)


def test_accuracy_difference_is_a_loop_over_heads_switched_off():
    subject = attlas.load("recall")
    data = recall.generate(12, 3)
    texts, labels = [each.text for each in data], [each.label for each in data]

    def right():
        said = subject.predict(texts)["label"]
        return np.mean([word.strip() == label for word, label in zip(said, labels, strict=True)])

    whole, expected = right(), []
    for site in subject.sites:
        for head in range(site.heads):
            with attlas.prune(subject, {site.name: head}):
                expected.append(whole - right())
    found = attlas.head_importance(subject, data, "accuracy_difference")
    assert len(set(expected)) > 2
    np.testing.assert_allclose(found.mean, expected, atol=1e-9)


def test_random_is_the_same_for_a_seed_and_another_for_another(subject):
    one, same, other = (importance(subject, "random", seed=seed) for seed in (1, 1, 2))
    assert np.array_equal(one.mean, same.mean) and not np.array_equal(one.mean, other.mean)
    assert np.array_equal(one.low, one.mean) and np.array_equal(one.high, one.mean)
