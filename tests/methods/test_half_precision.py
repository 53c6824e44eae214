"""In half precision every method ranks the tokens of a trained model as it does in single."""

from functools import cache

import numpy as np
import pytest
from scipy.stats import spearmanr

import attlas
from attlas.methods import METHODS

FEW = {"samples": 64, "steps": 12}
TEXTS = [example.text for example in attlas.texts("reviews")][:6]


@cache
def sentiment(dtype):
    return attlas.load("sentiment", dtype=dtype)


@cache
def scores(method, dtype):
    options = {name: value for name, value in FEW.items() if name in METHODS[method].options}
    found = attlas.explain(sentiment(dtype), TEXTS, method, "positive", maps=False, **options)
    return [each.scores for each in found]


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
@pytest.mark.parametrize("method", METHODS.names())
def test_the_order_of_the_tokens_stays(method, dtype):
    pairs = zip(scores(method, "float32"), scores(method, dtype), strict=True)
    found = [spearmanr(whole, half).statistic for whole, half in pairs]
    assert np.mean(found) >= 0.95
