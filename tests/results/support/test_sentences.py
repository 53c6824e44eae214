"""Where a sentence ends, and which tokens are of it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from attlas.results.support.words import sentence_spans, sentence_units
from attlas.tokens import Tokens


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", []),
        ("  ", []),
        ("One. Two! Three", ["One.", "Two!", "Three"]),
        ("It costs 3.5 (or so.) Yes?", ["It costs 3.5 (or so.)", "Yes?"]),
        ("Wait... what?! No", ["Wait...", "what?!", "No"]),
        ('"Oh." he said', ['"Oh."', "he said"]),
        ("a line\nanother\n\n\nlast.", ["a line\n", "another\n\n\n", "last."]),
        ("\n\nHi.\n  There", ["Hi.\n", "There"]),
        ("你好。再见！嗯", ["你好。", "再见！", "嗯"]),
    ],
)
def test_sentences(text, expected):
    assert [text[start:end] for start, end in sentence_spans(text)] == expected


@given(st.text(alphabet="ab .!?\n\t\"'。", max_size=40))
def test_every_letter_is_in_one_sentence(text):
    spans = sentence_spans(text)
    inside = {place for start, end in spans for place in range(start, end)}
    assert sum(end - start for start, end in spans) == len(inside)
    assert all(place in inside for place, sign in enumerate(text) if not sign.isspace())


def test_tokens_of_sentences():
    text = "No. Yes\n\nEnd"
    spans = ((0, 2), (2, 3), None, (3, 7), (7, 9), (9, 12))
    pieces = ("No", ".", "[SEP]", " Yes", "\n\n", "End")
    special = (False, False, True, False, False, False)
    tokens = Tokens(pieces, spans, special, ("text",) * 6, {"text": text})
    units = sentence_units(tokens)
    assert [(unit.text, unit.positions) for unit in units] == [
        ("No.", (0, 1)),
        ("[SEP]", (2,)),
        ("Yes", (3, 4)),  # the end of a line is of the sentence before it
        ("End", (5,)),
    ]


def test_patches_stay_alone():
    tokens = Tokens(
        ("0,0", "0,1"), (None,) * 2, (False,) * 2, ("image",) * 2, grids={"image": (1, 2)}
    )
    assert [unit.positions for unit in sentence_units(tokens)] == [(0,), (1,)]
