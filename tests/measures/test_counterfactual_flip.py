"""Whether the editors' changes at the highest words turn a model, on a bag of three words."""

import numpy as np
import pytest
from known_models import ignores_attention

import attlas
from attlas.data.example import Example
from attlas.errors import UsageError
from attlas.measures import Occasion
from attlas.measures.counterfactual_flip import counterfactual_flip, exchanged, exchanges


def flip(text, revised, method="input_x_gradient", **asked):
    subject = ignores_attention()
    explanation = attlas.explain(subject, text, method, **asked)
    example = Example(text, fields={"revised_text": revised} if revised else {})
    return counterfactual_flip(Occasion(subject, text, explanation, 0, example))


def test_the_word_that_counts_was_changed():
    assert flip("a good film", "a bad film") == 1


def test_a_word_that_does_not_count_was_changed_too():
    assert flip("this is a good film", "that is a bad film") == 1


def test_explanations_that_miss_the_word_do_not_turn_the_model():
    # With the target against what is predicted, the word that counts comes last.
    assert flip("a good film", "a bad film", target="NEGATIVE") == 0


def test_half_of_what_was_needed_is_not_enough():
    # 2 + 2 − 2.5 stays above zero with one change; both are touched only if both are on top.
    assert flip("good xx bad yy good", "bad xx bad yy bad") == 1
    assert flip("good xx bad yy good", "bad xx bad yy bad", target="NEGATIVE") == 0


def test_words_put_in_belong_to_those_beside_them():
    assert flip("xx good", "xx bad bad good") == 1
    assert flip("good xx yy zz", "good xx yy bad bad zz") == 0


def test_pairs():
    assert flip(("xx fine", "a good film"), ("xx fine", "a bad bad film")) == 1
    assert flip(("a good film", "fine fine"), ("a bad bad film", "fine fine")) == 1


def test_no_figure_where_the_editors_do_not_turn_the_model():
    assert np.isnan(flip("a good film", "a fine film"))


def test_the_revised_text_is_needed():
    with pytest.raises(UsageError, match="revised_text"):
        flip("a good film", None)


def test_versions_of_different_kinds_are_refused():
    with pytest.raises(UsageError, match="both one text, or both a pair"):
        flip("a good film", ("a bad film", "fine"))
    with pytest.raises(UsageError, match="not list"):
        flip("a good film", ["a", "bad", "film"])


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("a good film", "a bad film"),
        ("a good film", "a very bad and long film indeed"),
        ("really not  a good\nfilm", "a good\nfilm"),
        ("", "new"),
        ("old", ""),
    ],
)
def test_all_exchanges_make_the_other_version_and_none_make_this(before, after):
    found = exchanges(before, after)
    assert exchanged(before, []) == before
    assert exchanged(before, found).split() == after.split()


def test_capitals_and_punctuation_are_no_change():
    assert exchanges("Good, really good.", "good really GOOD!") == []
