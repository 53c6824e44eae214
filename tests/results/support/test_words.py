"""Tokens joined into words; the cases are worked out by hand."""

from itertools import pairwise

import numpy as np
import pytest
import tiny
from hypothesis import example, given, settings
from hypothesis import strategies as st

from attlas.errors import UsageError
from attlas.models.encoding.encode import encode
from attlas.models.encoding.images import patch_tokens
from attlas.results.support.words import word_spans, word_units
from attlas.tokens import Tokens

NAMES = ("text", "text_a", "text_b")
ENOUGH = 10**9
KINDS = sorted(tiny.TOKENIZER_KINDS)
PLAIN_WORD = st.text("abcdefghijklmnopqrstuvwxyzABCXYZ0123456789", min_size=1, max_size=12)


def tokens_of(source, *pieces, words=()):
    """Tokens of one text, each `(text, start, end)`, or a text alone for a special one."""
    rows = [(piece, None) if isinstance(piece, str) else (piece[0], piece[1:]) for piece in pieces]
    return Tokens(
        tuple(text for text, _ in rows),
        tuple(span for _, span in rows),
        tuple(span is None for _, span in rows),
        ("text",) * len(rows),
        {"text": source},
        {"text": words} if words else {},
    )


def joined(tokens):
    return [(unit.text, unit.positions) for unit in word_units(tokens)]


def words_of(text):
    return [text[slice(*span)] for span in word_spans(text)]


# Words in a text


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("It isn't well-known, is it?", ["It", "isn't", "well-known", ",", "is", "it", "?"]),
        ("the dogs’ house’s end-", ["the", "dogs", "’", "house’s", "end", "-"]),
        ("a--b snake_case 3.5%", ["a", "-", "-", "b", "snake_case", "3", ".", "5", "%"]),
        ("東京 is 大きい。", ["東", "京", "is", "大", "き", "い", "。"]),
        ("Tokyo東京!", ["Tokyo", "東", "京", "!"]),
        ("𠮷野家", ["𠮷", "野", "家"]),
        ("한국어 문장", ["한국어", "문장"]),
        ("ก็ดี", ["ก็", "ดี"]),  # a vowel sign stays with its consonant
        ("cafe\u0301s na\u0308ive", ["cafe\u0301s", "na\u0308ive"]),
        ("हिन्दी में", ["हिन्दी", "में"]),
        ("ذَهَبَ الوَلَدُ إلى", ["ذَهَبَ", "الوَلَدُ", "إلى"]),
        ("می‌خواهم بروم", ["می‌خواهم", "بروم"]),  # a joiner of no width is part of a word
        ("שָׁלוֹם עולם!", ["שָׁלוֹם", "עולם", "!"]),
        ("👩‍🚀👍🏽🇩🇪🇫🇷❤️", ["👩‍🚀", "👍🏽", "🇩🇪", "🇫🇷", "❤️"]),
        ("\u0301 \u200b\x00", ["\u0301", "\u200b", "\x00"]),
        (" \t\n\u2003\u2028", []),
        ("", []),
    ],
)
def test_words_of_a_text(text, words):
    assert words_of(text) == words


@settings(deadline=None)
@given(st.text())
def test_every_sign_but_white_space_is_in_one_word(text):
    spans = word_spans(text)
    covered = [place for start, end in spans for place in range(start, end)]
    assert covered == sorted(set(covered))
    assert {i for i, sign in enumerate(text) if not sign.isspace()} == set(covered)


# Joining


def test_word_pieces():
    tokens = tokens_of(
        "Good films!",
        "[CLS]",
        ("good", 0, 4),
        ("film", 5, 9),
        ("##s", 9, 10),
        ("!", 10, 11),
        "[SEP]",
    )
    assert joined(tokens) == [
        ("[CLS]", (0,)),
        ("Good", (1,)),
        ("films", (2, 3)),
        ("!", (4,)),
        ("[SEP]", (5,)),
    ]


def test_byte_pairs_with_the_space_before_them():
    tokens = tokens_of("so nice", ("so", 0, 2), ("Ġn", 2, 4), ("ice", 4, 7))
    assert joined(tokens) == [("so", (0,)), ("nice", (1, 2))]
    assert tokens.labels() == ("so", "n", "ice")


def test_the_bytes_of_one_character_stay_together():
    tokens = tokens_of("a 🙂🙂", ("a", 0, 1), ("ĠðŁ", 1, 3), ("Ļ", 2, 3), ("Ĥ", 2, 3), ("🙂", 3, 4))
    assert joined(tokens) == [("a", (0,)), ("🙂", (1, 2, 3)), ("🙂", (4,))]
    assert tokens.labels() == ("a", "ĠðŁ", "Ļ", "Ĥ", "🙂")


def test_a_lone_space_mark_goes_with_the_word_after_it():
    tokens = tokens_of("a b", ("▁", 0, 0), ("a", 0, 1), ("▁", 1, 2), ("b", 2, 3))
    assert joined(tokens) == [("a", (0, 1)), ("b", (2, 3))]
    assert tokens.labels() == ("▁", "a", " ", "b")


def test_hyphens_and_apostrophes_join():
    pieces = [("well", 0, 4), ("-", 4, 5), ("known", 5, 10), ("don", 11, 14), ("'", 14, 15)]
    tokens = tokens_of("well-known don't", *pieces, ("t", 15, 16))
    assert joined(tokens) == [("well-known", (0, 1, 2)), ("don't", (3, 4, 5))]


def test_a_token_over_two_ideographs_joins_them():
    tokens = tokens_of("東京大学", ("東京", 0, 2), ("大", 2, 3), ("学", 3, 4))
    assert joined(tokens) == [("東京", (0,)), ("大", (1,)), ("学", (2,))]


def test_a_token_over_several_words_joins_them_all():
    tokens = tokens_of("in a box", ("in▁a", 0, 4), ("▁bo", 4, 7), ("x", 7, 8))
    assert joined(tokens) == [("in a", (0,)), ("box", (1, 2))]
    tokens = tokens_of("of the", ("o", 0, 1), ("f▁t", 1, 4), ("he", 4, 6))
    assert joined(tokens) == [("of the", (0, 1, 2))]


def test_the_end_of_a_line_is_alone_and_so_are_spaces_that_touch_no_word():
    pieces = [("a", 0, 1), ("ĊĊ", 1, 3), ("b", 3, 4), ("Ġ", 4, 5), ("Ġc", 5, 7), ("Ċ", 7, 8)]
    tokens = tokens_of("a\n\nb  c\n", *pieces)
    assert joined(tokens) == [
        ("a", (0,)),
        ("\n\n", (1,)),
        ("b", (2,)),
        (" ", (3,)),
        ("c", (4,)),
        ("\n", (5,)),
    ]
    assert tokens.labels() == ("a", "\n\n", "b", " ", "c", "\n")


def test_words_from_right_to_left():
    tokens = tokens_of("שלום לך", ("של", 0, 2), ("##ום", 2, 4), ("לך", 5, 7))
    assert joined(tokens) == [("שלום", (0, 1)), ("לך", (2,))]


def test_words_of_the_caller():
    source = "New York e.g. !"
    words = ((0, 8), (9, 13), (14, 15))
    pieces = [("New", 0, 3), ("York", 4, 8), ("e", 9, 10), (".", 10, 11), ("g", 11, 12)]
    tokens = tokens_of(source, *pieces, (".", 12, 13), ("!", 14, 15), words=words)
    assert joined(tokens) == [("New York", (0, 1)), ("e.g.", (2, 3, 4, 5)), ("!", (6,))]


def test_a_special_token_breaks_a_word_in_two():
    tokens = tokens_of("un[MASK]able", ("un", 0, 2), "[MASK]", ("able", 8, 12), words=((0, 12),))
    assert joined(tokens) == [("un", (0,)), ("[MASK]", (1,)), ("able", (2,))]


def test_a_special_token_with_a_place_is_alone():
    tokens = Tokens(("a", "<s>"), ((0, 1), (1, 4)), (False, True), ("text",) * 2, {"text": "a<s>"})
    assert [(unit.text, unit.special) for unit in word_units(tokens)] == [
        ("a", False),
        ("<s>", True),
    ]


def test_the_same_words_in_two_segments_do_not_mix():
    tokens = Tokens(
        ("fi", "##lm", "fi", "##lm"),
        ((0, 2), (2, 4), (0, 2), (2, 4)),
        (False,) * 4,
        ("text_a", "text_a", "text_b", "text_b"),
        {"text_a": "film", "text_b": "film"},
    )
    assert [(unit.segment, unit.positions) for unit in word_units(tokens)] == [
        ("text_a", (0, 1)),
        ("text_b", (2, 3)),
    ]
    assert tokens.labels() == ("fi", "lm", "fi", "lm")


def test_neighbours_of_another_segment_share_nothing():
    tokens = Tokens(
        ("a", "a"), ((0, 1), (0, 1)), (False,) * 2, ("one", "two"), {"one": "a", "two": "A"}
    )
    assert tokens.labels() == ("a", "A")


def test_patches_are_alone():
    torch = pytest.importorskip("torch")
    tokens = patch_tokens(torch.zeros(1, 3, 16, 24), size=8, count=7)
    assert joined(tokens) == [(text, (i,)) for i, text in enumerate(tokens)]
    assert [unit.special for unit in word_units(tokens)] == [True] + [False] * 6
    assert tokens.labels() == ("[CLS]", "0,0", "0,1", "0,2", "1,0", "1,1", "1,2")


def test_pieces_without_a_source():
    tokens = Tokens(("fi", "##lm"), ((0, 2), (2, 4)), (False,) * 2, ("text",) * 2)
    assert joined(tokens) == [("fi", (0,)), ("##lm", (1,))]
    assert tokens.labels() == ("fi", "##lm")


def test_many_tokens():
    source = "ab " * 5000
    pieces = [("a", 3 * i, 3 * i + 1) for i in range(5000)]
    units = word_units(tokens_of(source, *pieces))
    assert [unit.text for unit in units] == ["ab"] * 5000


# Any text, any tokenizer


def encoded(kind, text):
    """The text as tokens, or None where the tokenizer leaves nothing of it."""
    try:
        return encode(tiny.tokenizer(kind), text, NAMES, ENOUGH).tokens
    except UsageError:
        return None


def check_units(tokens):
    units = word_units(tokens)
    assert [i for unit in units for i in unit.positions] == list(range(len(tokens)))
    for unit in units:
        assert {tokens.segments[i] for i in unit.positions} == {unit.segment}
        assert all(tokens.special[i] == unit.special for i in unit.positions)
        assert not unit.special or len(unit.positions) == 1
    scores = np.random.default_rng(0).normal(size=len(tokens))
    total = sum(scores[list(unit.positions)].sum() for unit in units)
    assert np.allclose(total, scores.sum())
    assert len(tokens.labels()) == len(tokens)


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=60, deadline=None)
@given(text=st.text(min_size=1, max_size=40))
@example(text="👩‍🚀 नमस्ते\u0301\r\n\t  東京")
def test_units_of_any_text(kind, text):
    tokens = encoded(kind, text)
    if tokens is not None:
        check_units(tokens)
        # Words that end where others begin: no two units say the same piece of text twice.
        spans = [unit.span for unit in word_units(tokens) if unit.span]
        assert all(one[1] <= other[0] for one, other in pairwise(spans))


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=30, deadline=None)
@given(pair=st.tuples(st.text(min_size=1, max_size=20), st.text(min_size=1, max_size=20)))
def test_units_of_any_pair(kind, pair):
    tokens = encoded(kind, pair)
    if tokens is not None:
        check_units(tokens)


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=40, deadline=None)
@given(words=st.lists(PLAIN_WORD, min_size=1, max_size=8))
def test_units_of_plain_words_are_the_words(kind, words):
    tokens = encoded(kind, " ".join(words))
    units = [unit.text for unit in word_units(tokens) if not unit.special]
    assert units == words


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=40, deadline=None)
@given(words=st.lists(st.text(min_size=1, max_size=6), min_size=1, max_size=6))
def test_no_unit_reaches_over_words_of_the_caller_unless_a_token_does(kind, words):
    tokens = encoded(kind, list(words))
    if tokens is None:
        return
    check_units(tokens)
    spans = tokens.words["text"]
    over = [
        i
        for i, offset in enumerate(tokens.offsets)
        if offset and sum(a < offset[1] and offset[0] < b for a, b in spans) > 1
    ]
    for unit in word_units(tokens):
        if unit.span and not set(over) & set(unit.positions):
            inside = [(a, b) for a, b in spans if a < unit.span[1] and unit.span[0] < b]
            assert len(inside) <= 1


def test_white_space_before_a_special_token_in_the_text_stays_alone():
    tokens = Tokens(
        ("hi", "Ċ", "<|end|>"),
        ((0, 2), (2, 3), None),
        (False, False, True),
        ("text",) * 3,
        {"text": "hi\n<|end|>"},
    )
    assert [(unit.text, unit.positions) for unit in word_units(tokens)] == [
        ("hi", (0,)),
        ("\n", (1,)),
        ("<|end|>", (2,)),
    ]
