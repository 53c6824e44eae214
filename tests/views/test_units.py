import pytest
from views import samples

from attlas.views.units import (
    gap,
    ordinal,
    patches,
    score_text,
    strongest,
    visible,
    with_places,
    words_or_tokens,
)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", "∅"),
        ("  ", "␣␣"),
        ("\n", "⏎"),
        ("\x1b[31m", "␛[31m"),
        ("a\x9bb", "a\\u009bb"),
        ("\u202eevil", "\\u202eevil"),
        ("\ud800", "\\ud800"),
        ("שלום 🧑‍🚀 e\u0301", "שלום 🧑‍🚀 e\u0301"),
    ],
)
def test_what_would_be_obeyed_is_shown_instead(text, expected):
    assert visible(text) == expected


def test_words_that_occur_twice_carry_their_place():
    units = with_places(words_or_tokens(samples.film()))
    assert [unit.text for unit in units[:5]] == ["[CLS]", "not (1st)", "a", "great", "films"]
    assert [unit.text for unit in units[5:]].count("not (2nd)") == 1


@pytest.mark.parametrize(
    ("number", "word"),
    [(1, "1st"), (2, "2nd"), (3, "3rd"), (4, "4th"), (11, "11th"), (113, "113th"), (102, "102nd")],
)
def test_ordinals(number, word):
    assert ordinal(number) == word


@pytest.mark.parametrize(
    ("score", "limit", "expected"),
    [
        (0.25, 0.9, "+0.250"),
        (-0.25, 0.9, "-0.250"),
        (0.0012, 0.02, "+0.0012"),
        (12.345, 34.0, "+12.3"),
        (812.4, 900.0, "+812"),
        (2e-9, 4e-9, "+2.00e-09"),
        (0.0, 0.0, "+0.000"),
    ],
)
def test_figures_have_three_significant_digits_at_the_top(score, limit, expected):
    assert score_text(score, limit, signed=True) == expected


def test_a_score_without_a_sign_has_none():
    assert score_text(0.25, 0.9, signed=False) == "0.250"


def test_units_are_the_words_with_the_place_of_their_tokens():
    films = next(unit for unit in words_or_tokens(samples.film()) if unit.text == "films")
    assert (films.score, films.start, films.end) == (0.14, 12, 17)


def test_units_are_the_tokens_where_there_are_no_words():
    units = words_or_tokens({**samples.film(), "words": None})
    assert [unit.text for unit in units][4:6] == ["film", "s"]


def test_units_that_touch_in_the_text_touch_when_shown():
    units = words_or_tokens(samples.film())
    text = "".join(gap(a, b) + b.text for a, b in zip([None, *units], units, strict=False))
    assert text == "[CLS] not a great films, but I could not look away [SEP]"


def test_a_space_that_is_a_token_stands_before_its_word():
    tokens = [
        samples.token("over", 0.0, start=0, end=4),
        samples.token(" ", 0.0, start=4, end=5),
        samples.token("2", 0.0, start=5, end=6),
    ]
    words = [samples.word("over", 0.0, [0]), samples.word("2", 0.0, [1, 2])]
    before, unit = words_or_tokens(samples.explanation([], tokens=tokens, words=words))
    assert gap(before, unit) == " "


def test_the_strongest_are_by_absolute_score_and_not_special():
    top = strongest(words_or_tokens(samples.film()), 3)
    assert [unit.text for unit in top] == ["not", "great", "away"]


def found(payload):
    return patches(payload, words_or_tokens(payload))


def test_a_grid_that_does_not_fit_is_no_grid():
    ((_, cells),) = found(samples.image(3, 4))
    assert len(cells) == 12
    assert found(samples.photograph(3, 4, grid=[3, 5])) == []
    assert found(samples.film()) == []
