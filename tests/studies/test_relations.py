"""The study of relations: the sample it comes with, and its rules."""

from collections import Counter

import pytest

from attlas.data.files.conllu import read_conllu
from attlas.studies.relations import _sample, claims_on, over_splits


def test_every_sentence_of_the_sample_is_a_tree():
    sentences = read_conllu(_sample())
    assert len(sentences) == 160
    for each in sentences:
        assert each.heads.count(-1) == 1 and each.relations[each.heads.index(-1)] == "root"
        for place in range(len(each.words)):
            seen = set()
            while place != -1:
                assert place not in seen, each.words
                seen.add(place)
                place = each.heads[place]


def test_the_sample_has_enough_words_of_each_relation():
    counts = Counter(name for each in read_conllu(_sample()) for name in each.relations)
    assert min(counts[name] for name in ("det", "obj", "case", "nmod", "nsubj")) >= 40


def test_the_words_of_the_sample_hang_where_they_should():
    first = read_conllu(_sample())[0]
    words = dict(zip(first.words, zip(first.heads, first.relations, strict=True), strict=True))
    # The painter should like her old boat.
    assert first.words == ("The", "painter", "should", "like", "her", "old", "boat", ".")
    assert words["The"] == (1, "det") and words["painter"] == (3, "nsubj")
    assert words["boat"] == (3, "obj") and words["her"] == (6, "nmod")


def split(accuracy, beyond, overall):
    record = {"head": "encoder.0 head 1", "accuracy": accuracy, "offset_accuracy": 0.4}
    record |= {"gain": accuracy - 0.4, "beyond": beyond}
    named = {name: record for name in ("det", "obj", "case", "nmod")}
    return {**named, "any": {**record, "gain": overall}}


def test_claims_are_decided_by_their_rules():
    good = [claim.verdict for claim in claims_on([split(0.9, True, 0.05)] * 3)]
    assert good == ["reproduced"] * 6
    bad = [claim.verdict for claim in claims_on([split(0.5, False, 0.5)] * 3)]
    assert bad == ["not reproduced"] * 6


def test_a_relation_that_a_split_lacks_is_left_out_of_its_mean():
    found = [split(0.9, True, 0.1), {"any": {"gain": 0.1, "accuracy": 0.5}}]
    assert over_splits(found, "det", "accuracy").n == 1
    assert over_splits(found, "any", "accuracy").value == pytest.approx(0.7)
