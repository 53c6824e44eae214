"""Words inserted into texts, and control words of the same frequency."""

from collections import Counter

import numpy as np
import pytest

from attlas.heads.trigger_effects import (
    POOL,
    choose_places,
    count_words,
    draw_controls,
    insert,
    relative_place,
)
from attlas.results.triggers import TriggerWord


def words(*given, segment="text"):
    return [TriggerWord(text, segment, place) for text, place in given]


@pytest.mark.parametrize(("start", "place"), [(0, 0.0), (4, 0.25), (8, 0.5), (12, 0.75), (16, 1.0)])
def test_the_place_of_a_word_among_the_words(start, place):
    assert relative_place("one two six ten six", start) == place


def test_the_only_word_is_the_first():
    assert relative_place("one", 0) == 0.0


@pytest.mark.parametrize(
    ("place", "expected"),
    [(0.0, "X a b, c"), (0.5, "a b X , c"), (0.75, "a b, X c"), (1.0, "a b, c X")],
)
def test_a_word_goes_to_its_place_and_the_text_stays_as_it_is(place, expected):
    assert insert("a b, c", words(("X", place))) == expected


def test_words_keep_their_order_and_one_that_finds_its_place_taken_goes_to_the_next():
    assert insert("a b", words(("X", 0.0), ("Y", 1.0))) == "X a b Y"
    assert insert("a b", words(("X", 0.0), ("Y", 0.0))) == "X Y a b"
    assert insert("a b", words(("X", 1.0), ("Y", 1.0))) == "a b Y X"


def test_places_are_all_different():
    assert choose_places([0.5, 0.5, 0.5], 4) == [2, 3, 1]
    assert sorted(choose_places([1.0] * 5, 5)) == [0, 1, 2, 3, 4]


def test_of_a_pair_each_part_gets_its_own():
    both = words(("X", 0.0), segment="text_a") + words(("Y", 1.0), segment="text_b")
    assert insert(("a b", "c d"), both) == ("X a b", "c d Y")


def test_words_are_counted_whatever_their_case_in_both_parts_of_a_pair():
    assert count_words(["The film, the", ("A", "film")]) == Counter(
        {"the": 2, "film": 2, ",": 1, "a": 1}
    )


def test_random_words_are_about_as_frequent_and_never_the_trigger():
    counts = Counter({f"rare{i}": 1 for i in range(40)} | {f"common{i}": 100 for i in range(POOL)})
    counts["Common0".casefold()] = 100
    random = np.random.default_rng(0)
    drawn = [draw_controls(words(("Common0", 0.3)), counts, random)[0] for _ in range(200)]
    names = {word.text for word in drawn}
    assert "common0" not in names
    # 19 others are as frequent; the pool has one more, and which of the rare it is changes
    assert {f"common{i}" for i in range(1, POOL)} < names
    assert np.mean([word.text.startswith("common") for word in drawn]) > 0.85
    assert {(word.segment, word.place) for word in drawn} == {("text", 0.3)}
