"""What a newcomer sees first: the default method names a word that a person would point at."""

import re
from pathlib import Path

import attlas

SENTENCES = (Path(__file__).parent / "first_sentences.txt").read_text().splitlines()


def test_the_default_method_names_a_word_that_a_person_would_point_at():
    texts = [sentence.replace("*", "") for sentence in SENTENCES]
    found = attlas.explain(attlas.load(), texts)
    named = [each.top(1)[0][0].lower() for each in found]
    pointed = [re.findall(r"\*(\w+)\*", sentence.lower()) for sentence in SENTENCES]
    missed = [
        f"{word} first in: {sentence}"
        for word, words, sentence in zip(named, pointed, SENTENCES, strict=True)
        if word not in words
    ]
    assert len(SENTENCES) == 20
    assert len(missed) <= 2, missed
