"""The rules of the verdict, case by case."""

import numpy as np
import pytest

from attlas.auditing.verdict.rules import RemovalTest, Rules, decide
from attlas.errors import UsageError
from attlas.mathematics.intervals import Estimate

RULES = Rules()


def between(low, high, inputs=100):
    return Estimate((low + high) / 2, float(low), float(high), inputs)


def measured(s, less=(-0.05, 0.05), room=(0.2, 0.3), inputs=100):
    distance = None if less is None else between(*less)
    return RemovalTest(between(*s, inputs), distance, between(*room))


FOR = measured((0.5, 0.6))
AGAINST = measured((-0.02, 0.08))
WIDE = measured((-0.1, 0.5))
BORDER = measured((0.5, 0.6), less=(-0.15, -0.05))


@pytest.mark.parametrize(
    ("case", "finding"),
    [
        (FOR, "for"),
        (measured((0.01, 0.6)), "for"),
        (measured((0.5, 0.6), less=(-0.09, 0.3)), "for"),
        (AGAINST, "against"),
        (measured((0.02, 0.08)), "against"),  # above zero, but not by anything that matters
        (measured((-0.9, -0.2)), "against"),
        (measured((0.5, 0.6), less=(-0.4, -0.11)), "against"),
        (measured((0.5, 0.6), room=(0, 0.009)), "against"),  # no token matters
        (measured((np.nan, np.nan), less=(np.nan, np.nan), room=(0, 0)), "against"),
        (measured((-0.01, 0.12)), "open"),
        (measured((0.5, 0.6), less=(-0.4, -0.09)), "open"),
        (measured((0.5, 0.6), less=(-0.11, 0.2)), "open"),
        (measured((0.5, 0.6), less=None), "open"),
        (measured((-0.1, 0.05), less=None), "against"),
        (measured((-np.inf, np.inf), less=(-np.inf, np.inf)), "open"),
    ],
)
def test_what_one_removal_says(case, finding):
    assert case.finding(RULES) == finding


@pytest.mark.parametrize(
    ("cases", "word"),
    [
        ([FOR], "supported"),
        ([FOR, FOR], "supported"),
        ([AGAINST, AGAINST], "not supported"),
        ([FOR, AGAINST], "partly"),
        ([FOR, BORDER], "partly"),
        ([AGAINST, BORDER], "partly"),
        ([BORDER], "partly"),
        ([WIDE], "too few texts"),
        ([FOR, WIDE], "too few texts"),
        ([AGAINST, WIDE], "too few texts"),
        ([FOR, AGAINST, WIDE], "partly"),  # whatever the third turns out to be
        ([measured((0.3, 0.9), less=(-0.15, -0.05))], "partly"),  # what is wide is not what is open
        ([measured((0.5, 0.6), less=(-0.3, 0.1))], "too few texts"),
        ([measured((0.5, 0.6), less=None)], "partly"),
        ([measured((0.5, 0.6), inputs=9)], "too few texts"),
        ([FOR, measured((0.5, 0.6), inputs=9)], "too few texts"),
        ([measured((-0.1, 0.0), inputs=9)], "too few texts"),
    ],
)
def test_the_word(cases, word):
    assert decide(cases, None, RULES) == word


@pytest.mark.parametrize(
    ("used", "word"),
    [
        ((0.3, 0.5), "supported"),
        ((0.01, 0.09), "not supported"),  # less than a tenth of what exchanging it could do
        ((-0.05, 0.12), "partly"),
        ((-0.2, 0.3), "too few texts"),
    ],
)
def test_attention_must_be_used(used, word):
    assert decide([FOR], between(*used), RULES) == word
    assert decide([AGAINST], between(*used), RULES) == "not supported"


def test_thresholds_can_be_set_and_must_make_sense():
    assert BORDER.finding(Rules(delta=0.2)) == "for"
    assert decide([measured((0.5, 0.6), inputs=9)], None, Rules(least_texts=5)) == "supported"
    for wrong in ({"delta": 0.0}, {"least_texts": 1}, {"least_room": -0.1}):
        with pytest.raises(UsageError, match="delta is above 0"):
            Rules(**wrong)


def test_a_reading_that_fails_beside_one_that_holds_is_partly():
    assert decide([FOR], None, RULES, ("raw_attention",)) == "partly"
    assert decide([FOR], None, RULES) == "supported"
    assert decide([AGAINST], None, RULES, ("raw_attention",)) == "not supported"
