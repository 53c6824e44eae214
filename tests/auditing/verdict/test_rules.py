"""The rules of the verdict: each with a case on either side of it, and the word over the grid."""

from dataclasses import replace
from math import inf

import numpy as np
import pytest
from drawn_evidence import drawn_interval, drawn_removal_test

from attlas.auditing.verdict.rules import (
    FLOORS,
    MARGINS,
    RemovalTest,
    Rules,
    decide,
    times_for_plain_weights,
)
from attlas.auditing.verdict.verdict import _word as word_of
from attlas.errors import UsageError
from attlas.mathematics.intervals import Estimate

RULES = Rules(floor=0.3, margin=0.1)
USED, UNUSED = Estimate(0.2, 0.1, 0.3, 100), Estimate(0.001, 0.0, 0.01, 100)
ORDER = ("not supported", "partly", "supported")


def between(low, high, inputs=100):
    return Estimate((low + high) / 2, low, high, inputs)


GOOD = RemovalTest(
    s=between(0.7, 0.8),
    less_control=between(0.2, 0.4),
    less_reference=between(-0.05, 0.05),
    room=between(0.2, 0.3),
    carrying=between(0.8, 0.9),
    contrast=between(0.5, 0.6),
    typical=between(0.3, 0.4),
    effective=60.0,
)
BAD = replace(GOOD, s=between(0.0, 0.1))
IN_PART = replace(GOOD, less_reference=between(-0.3, -0.2))
OPEN = replace(GOOD, s=between(0.2, 0.45))
HOPELESS = replace(GOOD, s=Estimate(0.3, 0.2, 0.4, 100))  # right at the floor
TOUCHING = replace(GOOD, s=between(0.92, 1.0), less_control=between(-0.02, 0.02))
FLAT = replace(GOOD, typical=between(0.0, 0.01), carrying=Estimate(0.0, 0.0, 0.04, 100))


@pytest.mark.parametrize(
    ("changed", "finding"),
    [
        ({}, "for"),
        # The floor.
        ({"s": between(0.31, 0.5)}, "for"),
        ({"s": between(0.29, 0.5)}, "open"),
        ({"s": between(0.1, 0.31)}, "open"),
        ({"s": between(0.1, 0.29)}, "against"),
        # The control.
        ({"less_control": between(0.01, 0.4)}, "for"),
        ({"less_control": between(-0.01, 0.4)}, "open"),
        ({"less_control": between(-0.2, 0.01)}, "open"),
        ({"less_control": between(-0.2, -0.01)}, "against"),
        ({"less_control": None}, "for"),
        # Near the best order nothing can be far above it.
        ({"s": between(0.91, 1.0), "less_control": between(-0.1, 0.1)}, "for"),
        ({"s": between(0.89, 1.0), "less_control": between(-0.1, 0.1)}, "open"),
        ({"s": between(0.84, 1.0), "less_control": between(-0.09, 0.05)}, "for"),
        ({"s": between(0.75, 1.0), "less_control": between(-0.09, 0.05)}, "open"),
        # The reference.
        ({"less_reference": between(-0.09, 0.3)}, "for"),
        ({"less_reference": between(-0.11, 0.3)}, "open"),
        ({"less_reference": between(-0.11, 0.08)}, "in part"),
        ({"less_reference": between(-0.5, -0.09)}, "open"),
        ({"less_reference": between(-0.5, -0.11)}, "in part"),
        ({"less_reference": None}, "in part"),
        # Nothing to point at.
        ({"contrast": between(0.0, 0.16)}, "for"),
        ({"contrast": between(0.0, 0.14)}, "against"),
        ({"typical": between(0.0, 0.03)}, "for"),
        ({"typical": between(0.0, 0.01)}, "against"),
        ({"typical": between(0.0, 0.01), "carrying": Estimate(0.0, 0.0, 0.1, 36)}, "against"),
        ({"typical": between(0.0, 0.01), "carrying": Estimate(0.0, 0.0, 0.1, 35)}, "open"),
        # Enough texts carry the sum.
        ({"effective": 10.0}, "for"),
        ({"effective": 9.9}, "open"),
        ({"effective": 9.9, "s": between(0.0, 0.1)}, "open"),
        ({"effective": 9.9, "contrast": between(0.0, 0.14)}, "against"),
    ],
)
def test_what_a_removal_says(changed, finding):
    assert replace(GOOD, **changed).finding(RULES) == finding


@pytest.mark.parametrize(
    ("tested", "used", "word"),
    [
        ([GOOD, GOOD], USED, "supported"),
        ([GOOD], USED, "partly"),
        ([GOOD, GOOD], None, "partly"),
        ([GOOD, GOOD], between(0.01, 0.3), "too few texts"),
        ([GOOD, GOOD], UNUSED, "not supported"),
        ([BAD, BAD], USED, "not supported"),
        ([BAD], None, "not supported"),
        ([BAD, FLAT], between(0.01, 0.3), "not supported"),
        ([GOOD, BAD], USED, "partly"),
        ([GOOD, IN_PART], USED, "partly"),
        ([IN_PART, BAD], None, "partly"),
        ([GOOD, OPEN], USED, "too few texts"),
        ([BAD, OPEN], USED, "too few texts"),
        ([GOOD, HOPELESS], USED, "partly"),
        ([BAD, HOPELESS], USED, "too few texts"),
        ([HOPELESS, HOPELESS], USED, "too few texts"),
    ],
)
def test_the_word(tested, used, word):
    assert decide(tested, used, RULES) == word


def test_more_texts_narrow_an_interval_by_their_root():
    # Half the width is 0.1, and 0.05 away from the floor: four times the texts.
    assert replace(GOOD, s=between(0.25, 0.45)).times_needed(RULES) == pytest.approx(4)
    assert HOPELESS.times_needed(RULES) == inf
    wide = replace(GOOD, less_reference=between(-0.3, 0.1))
    assert wide.finding(RULES) == "open"
    assert wide.times_needed(RULES) == pytest.approx(4)  # ±0.2 to ±0.1
    doubted = replace(GOOD, less_control=between(-0.1, 0.3))
    assert doubted.times_needed(RULES) == pytest.approx(4)
    assert replace(GOOD, effective=2.0).times_needed(RULES) == pytest.approx(5)
    assert replace(GOOD, effective=0.0).times_needed(RULES) == inf
    empty = replace(FLAT, carrying=Estimate(0.0, 0.0, 0.2, 18))
    assert empty.times_needed(RULES) == pytest.approx(2)


@pytest.mark.parametrize("changed", [{"floor": 0.0}, {"floor": 1.0}, {"margin": 1.2}])
def test_floor_and_margin_lie_between_nothing_and_all(changed):
    with pytest.raises(UsageError, match="floor and margin lie between 0 and 1"):
        Rules(**changed)


@pytest.mark.parametrize("name", ["least_room", "least_contrast", "least_use", "least_effective"])
def test_what_is_least_is_not_below_nothing(name):
    with pytest.raises(UsageError, match="least"):
        Rules(**{name: -1.0})


def test_the_grid_has_every_floor_and_margin_and_keeps_the_rest():
    grid = Rules(floor=0.25, least_use=0.07).grid()
    assert [(each.floor, each.margin) for each in grid] == [(f, m) for f in FLOORS for m in MARGINS]
    assert {each.least_use for each in grid} == {0.07}


GRID = {(floor, margin): Rules(floor, margin) for floor in FLOORS for margin in MARGINS}


def drawn_cases(count):
    """Removals and uses of all kinds."""
    random = np.random.default_rng(0)
    for _ in range(count):
        tested = [drawn_removal_test(random) for _ in range(random.integers(1, 4))]
        yield tested, None if random.random() < 0.2 else drawn_interval(random, 0, 0.3)


def test_the_word_never_rises_with_the_floor_nor_falls_with_the_margin():
    seen = set()
    for tested, used in drawn_cases(300):
        words = {key: decide(tested, used, rules) for key, rules in GRID.items()}
        seen |= set(words.values())
        decided = {key: word for key, word in words.items() if word != "too few texts"}
        for (floor, margin), word in decided.items():
            for (other_floor, other_margin), other in decided.items():
                if other_floor >= floor and other_margin <= margin:
                    assert ORDER.index(other) <= ORDER.index(word)
    assert seen >= {"not supported", "partly", "too few texts"}


def test_one_removal_alone_is_never_enough_for_supported():
    for tested, used in drawn_cases(300):
        for each in tested:
            assert decide([each], used, RULES) != "supported"


def test_the_word_over_the_grid_falls_from_supported_to_not_supported():
    """A removal that is clear at each threshold passes through all words, in order."""
    behind = replace(GOOD, s=between(0.34, 0.36), less_reference=between(-0.13, -0.11))
    words = {key: decide([behind, behind], USED, rules) for key, rules in GRID.items()}
    assert words[0.3, 0.15] == "supported" and words[0.3, 0.05] == "partly"
    assert {words[0.4, margin] for margin in MARGINS} == {"not supported"}


def test_weights_that_only_one_reading_makes_right_are_right_in_part():
    plain = [replace(GOOD, plain=each) for each in (between(-1.0, -0.9), between(0.31, 0.4))]
    assert decide([plain[0], plain[0]], USED, RULES) == "partly"
    assert decide([plain[0], plain[1]], USED, RULES) == "supported"
    assert decide([GOOD, GOOD], USED, RULES) == "supported"


def test_fewer_texts_do_not_clear_the_weights_as_they_are():
    """With fewer texts intervals are wider, and that alone never gives the better word."""
    sure, wide, above = (
        replace(GOOD, plain=each)
        for each in (between(-0.2, 0.1), between(-0.4, 0.35), between(0.31, 0.6))
    )
    assert decide([sure, sure], USED, RULES) == "partly"
    assert decide([wide, sure], USED, RULES) == "too few texts"
    assert decide([wide, wide], USED, RULES) == "too few texts"
    assert decide([wide, above], USED, RULES) == "supported"
    assert decide([sure, above], USED, RULES) == "supported"


def test_the_word_falls_as_the_floor_passes_the_weights_as_they_are():
    one = replace(GOOD, plain=between(0.25, 0.35))
    floors = np.linspace(0.2, 0.4, 41)
    words = [decide([one, one], USED, Rules(floor=float(floor))) for floor in floors]
    assert list(dict.fromkeys(words)) == ["supported", "too few texts", "partly"]
    assert words == sorted(words, key=("supported", "too few texts", "partly").index)


def test_how_many_texts_would_tell_whether_the_weights_do_as_they_are():
    below, above = between(0.1, 0.4), between(0.25, 0.45)
    one, other = (replace(GOOD, plain=each) for each in (below, above))
    assert times_for_plain_weights([one, one], RULES) == pytest.approx(9)
    assert times_for_plain_weights([one, other], RULES) == pytest.approx(4)  # one is enough
    sure = replace(GOOD, plain=between(0.0, 0.1))
    assert times_for_plain_weights([one, sure], RULES) == pytest.approx(9)


def test_a_word_that_fewer_than_four_of_five_splits_give_is_too_few_texts():
    good, behind = ({"delete": each, "mask": each} for each in (GOOD, IN_PART))
    splits = [good] * 4 + [behind]
    assert word_of(good, splits, USED, RULES) == ("supported", 0.8)
    assert word_of(good, [*splits[1:], behind], USED, RULES) == ("too few texts", 0.6)
