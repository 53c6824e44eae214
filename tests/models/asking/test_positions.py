"""Positions by number and by word."""

import pytest
from tiny_tokenizers import tokenizer

from attlas.errors import UsageError
from attlas.models.asking.positions import find_position
from attlas.models.encoding.encode import encode

NAMES = ("text", "text_a", "text_b")


def tokens_of(text):
    return encode(tokenizer("wordpiece"), text, NAMES, 64).tokens


def start(tokens, position):
    return tokens.segments[position], tokens.offsets[position][0]


@pytest.mark.parametrize(
    ("text", "given", "place"),
    [
        ("the film was not good", "was", ("text", 9)),
        ("was it, was it", ("was", 2), ("text", 8)),
        ("was it, was it", ["was", 1], ("text", 0)),
        ("Xylophone jazz", "Xylophone", ("text", 0)),
        ("it washes, it was", "was", ("text", 14)),
        ("in New York City", "New York", ("text", 3)),
        (("the film", "a film"), ("film", 2), ("text_b", 2)),
    ],
)
def test_a_word_is_read_at_its_first_token(text, given, place):
    tokens = tokens_of(text)
    position, notes = find_position(given, tokens)
    assert start(tokens, position) == place
    assert notes == ()


def test_the_first_of_several_is_noted():
    tokens = tokens_of("was it, was it")
    position, (note,) = find_position("was", tokens)
    assert start(tokens, position) == ("text", 0)
    assert note == "read at the first 'was' of 2; ('was', 2) is the second"


def test_numbers():
    tokens = tokens_of("the film")
    assert find_position(-1, tokens) == (len(tokens) - 1, ())


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ("is", "no word 'is'"),
        (" ", "no word ' '"),
        (("was", 3), "no 'was' number 3: the text has 2"),
        (("was", 0), "no 'was' number 0: the text has 2"),
        (99, "unknown position 99"),
        (1.5, "a position is a number"),
        (("was", "it"), "a position is a number"),
    ],
)
def test_what_is_no_position(given, why):
    with pytest.raises(UsageError, match=why):
        find_position(given, tokens_of("was it, was it"))
