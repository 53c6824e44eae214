"""Spans by hand: runs of marks, ranges of words, and what two versions differ in."""

import pytest

from attlas.data.spans import changed, joined, majority, marked, runs, spans_of, words_of


def cut(text, spans):
    return [text[start:end] for start, end in spans]


def test_words_are_those_of_split():
    text = " a  film\nof\tnote "
    assert cut(text, words_of(text)) == text.split()


def test_joined_tokens_know_their_places_even_when_one_is_empty():
    text, places = joined(["fine", "", "food"])
    assert (text, cut(text, places)) == ("fine  food", ["fine", "", "food"])


def test_runs_are_half_open():
    assert runs([1, 1, 0, 0, 1]) == [(0, 2), (4, 5)]
    assert runs([]) == runs([0, 0]) == []


def test_ranges_are_sorted_once_and_empty_ones_dropped():
    places = words_of("a b c d")
    assert spans_of(places, [[2, 4], [0, 1], [2, 4], [3, 3]]) == ((0, 1), (4, 7))
    with pytest.raises(ValueError, match="beyond the 4"):
        spans_of(places, [[3, 5]])


def test_there_is_a_mark_for_every_word():
    with pytest.raises(ValueError, match="1 marks for 2 words"):
        marked(words_of("a b"), [1])


def test_majority_is_more_than_half():
    assert majority([[1, 1, 0], [1, 0, 0]]) == [True, False, False]


@pytest.mark.parametrize(
    ("before", "after", "old", "new"),
    [
        ("It is terrible.", "It is great.", ["terrible"], ["great"]),
        ("Don't see this!", "See this.", ["Don't"], []),
        ("It is good", "It is not good", [], ["not"]),
        ("bad plot<br />and cast", "fine plot and cast", ["bad"], ["fine"]),
        ("The same.", "the same", [], []),
        ("one two three four", "one 2 three 4 five", ["two", "four"], ["2", "4 five"]),
    ],
)
def test_the_words_that_differ(before, after, old, new):
    spans, revised = changed(before, after)
    assert (cut(before, spans), cut(after, revised)) == (old, new)
