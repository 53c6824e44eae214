"""In half precision every method ranks the tokens of a trained model as it does in single."""

from functools import cache

import numpy as np
import pytest
from scipy.stats import spearmanr
from subjects import few

import attlas
from attlas.methods import METHODS

# The longer texts: in a short one, two near scores that change places are much of the order.
TEXTS = [example.text for example in attlas.texts("reviews_hard")][:3]

# Relevance is carried back in the model's own precision, and what the values cannot tell apart in
# it is left out of effective attention; their pages say so.
ROUGH = {("lrp_relevance", "bfloat16"): 0.7, ("effective_attention", "bfloat16"): 0.85}


@cache
def sentiment(dtype):
    return attlas.load("sentiment", dtype=dtype)


@cache
def scores(method, dtype):
    asked = {"maps": False, **few(method)}
    found = attlas.explain(sentiment(dtype), TEXTS, method, "positive", **asked)
    return [each.scores for each in found]


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
@pytest.mark.parametrize("method", METHODS.names())
def test_the_order_of_the_tokens_stays(method, dtype):
    pairs = zip(scores(method, "float32"), scores(method, dtype), strict=True)
    found = [spearmanr(whole, half).statistic for whole, half in pairs]
    assert np.mean(found) >= ROUGH.get((method, dtype), 0.95)
