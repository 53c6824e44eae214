"""Tokens as a record: a sequence of texts, each with a place."""

import copy
import json
import pickle
from dataclasses import replace

import pytest

from attlas.tokens import Tokens


def tokens_of(source, *pieces):
    """Tokens of one text, each `(text, start, end)`, or a text alone for a special one."""
    rows = [(piece, None) if isinstance(piece, str) else (piece[0], piece[1:]) for piece in pieces]
    return Tokens(
        tuple(text for text, _ in rows),
        tuple(span for _, span in rows),
        tuple(span is None for _, span in rows),
        ("text",) * len(rows),
        {"text": source},
    )


def test_each_token_needs_all_its_parts():
    with pytest.raises(ValueError, match="needs a text"):
        Tokens(("a", "b"), (None,), (True, True), ("text", "text"))


def test_tokens_are_a_sequence():
    tokens = tokens_of("a b c", "[CLS]", ("a", 0, 1), ("b", 2, 3), ("c", 4, 5))
    assert list(tokens) == ["[CLS]", "a", "b", "c"]
    assert (tokens[1], tokens[-2:], len(tokens)) == ("a", ("b", "c"), 4)
    assert "b" in tokens
    chosen = tokens.select([2, 0])
    assert (chosen.texts, chosen.offsets) == (("b", "[CLS]"), ((2, 3), None))
    assert (chosen.special, chosen.sources) == ((False, True), tokens.sources)


def test_followed_by():
    more = Tokens(("x",), ((0, 1),), (False,), ("prefix",), {"prefix": "x"}, {"prefix": ((0, 1),)})
    both = tokens_of("a", ("a", 0, 1)).followed_by(more)
    assert both.segments == ("text", "prefix")
    assert both.sources == {"text": "a", "prefix": "x"}
    assert both.words == {"prefix": ((0, 1),)}


@pytest.mark.parametrize("grids", [{}, {"image": (2, 3), "image 2": (1, 1)}])
def test_tokens_to_json_and_back(grids):
    tokens = Tokens(
        ("[CLS]", "a"), (None, (0, 0)), (True, False), ("text",) * 2, {"text": "a"}, {}, grids
    )
    assert Tokens.from_dict(json.loads(json.dumps(tokens.to_dict()))) == tokens


def test_spans_are_without_the_white_space_around():
    pieces = [("Ġa", 0, 2), ("Ċ", 2, 3), ("b\t", 3, 5), ("▁", 5, 5)]
    tokens = tokens_of(" a\nb\t", "[CLS]", *pieces)
    assert tokens.spans() == (None, (1, 2), (2, 3), (3, 4), (5, 5))


def test_labels_are_without_the_marks_of_the_tokenizer():
    pieces = [("Ġso", 0, 3), ("##s", 3, 4), ("Ċ", 4, 5), ("▁", 5, 5)]
    tokens = tokens_of(" SoS\n", "[CLS]", *pieces)
    assert tokens.labels() == ("[CLS]", "So", "S", "\n", "▁")


def test_places_are_given_without_the_white_space_that_tokens_hold():
    text = "The capital\n of"
    tokens = Tokens(
        ("The", "Ġcapital", "Ċ", "Ġof", "</s>"),
        ((0, 3), (3, 11), (11, 12), (12, 15), None),
        (False,) * 4 + (True,),
        ("text",) * 5,
        {"text": text},
    )
    assert tokens.spans() == ((0, 3), (4, 11), (11, 12), (13, 15), None)


def test_markup_is_labelled_without_the_signs_of_byte_level_tokenizers():
    tokens = Tokens(("<s>", "Ċ", "Ġnote"), (None,) * 3, (True,) * 3, ("text",) * 3)
    assert tokens.labels() == ("<s>", "\n", " note")


def later(calls):
    """Tokens that are found when somebody looks; `calls` says what was found, in turn."""

    def spell():
        calls.append("texts")
        return "so", "good"

    def place():
        calls.append("places")
        return "so good", ((0, 2), (2, 7))

    return Tokens.found_later((False, False), "text", spell, place)


def test_tokens_are_spelled_once_and_placed_only_when_looked_at():
    calls = []
    tokens = later(calls)
    assert (len(tokens), tokens.special, tokens.segments) == (2, (False, False), ("text", "text"))
    assert list(tokens) == ["so", "good"] == list(tokens.texts)
    assert calls == ["texts"]
    assert tokens.offsets == ((0, 2), (2, 7))
    assert tokens.sources == {"text": "so good"}
    assert calls == ["texts", "places"]


@pytest.mark.parametrize(
    "used",
    [
        lambda tokens: pickle.loads(pickle.dumps(tokens)),
        copy.deepcopy,
        lambda tokens: replace(tokens, texts=tokens.texts),
        lambda tokens: Tokens.from_dict(tokens.to_dict()),
        lambda tokens: tokens.first(2),
    ],
)
def test_tokens_found_later_are_tokens(used):
    known = tokens_of("so good", ("so", 0, 2), ("good", 2, 7))
    assert used(later([])) == known
    assert later([]) == known
