"""The reviews that are shipped: what they promise of their labels, kinds and marks."""

import re
from collections import Counter

import pytest

from attlas.data.sets.readers import review
from attlas.data.texts_by_name import review_rows, texts

KINDS = {"plain", "negation", "irony", "contrast", "comparison", "understatement", "question"}
PLAIN, HARD = texts("reviews"), texts("reviews_hard")
REVIEWS = [*PLAIN, *HARD]


def test_there_are_150_plain_ones_and_about_120_hard_ones():
    assert len(PLAIN) >= 150
    assert 110 <= len(HARD) <= 130


def test_labels_are_in_balance():
    counts = Counter(each.label for each in HARD)
    assert set(counts) == {"POSITIVE", "NEGATIVE", "MIXED"}
    assert counts["POSITIVE"] == counts["NEGATIVE"]
    assert counts["MIXED"] >= 25


def test_every_kind_is_there_with_every_label():
    counts = Counter((each.fields["kind"], each.label) for each in HARD)
    assert {kind for kind, _ in counts} == KINDS
    assert len(counts) == 3 * len(KINDS)
    assert min(counts.values()) >= 2


def test_plain_reviews_are_for_or_against_in_equal_parts_whatever_they_are_about():
    counts = Counter((each.fields["kind"], each.label) for each in PLAIN)
    subjects = ("film", "book", "meal", "hotel", "tool")
    assert set(counts) == {(kind, label) for kind in subjects for label in ("POSITIVE", "NEGATIVE")}
    assert len(set(counts.values())) == 1


def test_every_marked_word_is_in_the_text_where_it_is_said_to_be():
    rows = [row for name in ("reviews", "reviews_hard") for (row,) in review_rows(name)]
    for row, example in zip(rows, REVIEWS, strict=True):
        record = row.record()
        assert set(record) == {"text", "label", "kind", "marked"}
        words = [each if isinstance(each, str) else each["text"] for each in record["marked"]]
        assert words
        assert [example.text[start:end] for start, end in example.spans] == words


def test_marks_are_in_order_apart_and_do_not_cut_words():
    for example in REVIEWS:
        ends = [0, *(end for _, end in example.spans)]
        assert all(start >= end for (start, _), end in zip(example.spans, ends, strict=False))
        for start, end in example.spans:
            assert not re.match(r"\w\w", example.text[max(start - 1, 0) : start + 1]) or start == 0
            assert not re.match(r"\w\w", example.text[end - 1 : end + 1])


def test_marks_are_a_part_of_the_text():
    shares = [sum(end - start for start, end in e.spans) / len(e.text) for e in REVIEWS]
    assert min(shares) > 0 and max(shares) < 0.8


def test_no_review_is_there_twice():
    plain = [re.sub(r"\W+", " ", each.text.lower()) for each in REVIEWS]
    assert len(set(plain)) == len(plain)


def test_reviews_are_short_and_plain():
    for example in REVIEWS:
        assert 5 <= len(example.text.split()) <= 60
        assert re.fullmatch(r"[A-Za-z0-9 .,;:!?'-]+", example.text), example.text
        assert example.text == " ".join(example.text.split())
        assert example.text[-1] in ".?!"


def test_words_that_are_there_twice_need_their_start():
    record = {"text": "no wine, no song", "label": "NEGATIVE", "kind": "plain", "marked": ["no"]}
    with pytest.raises(ValueError, match="'no' occurs 2 times: give its start"):
        review(record)
    record["marked"] = [{"text": "no", "start": 9}]
    assert review(record).spans == ((9, 11),)
    record["marked"] = [{"text": "no", "start": 8}]
    with pytest.raises(ValueError, match="is not at 8"):
        review(record)
