"""Redundancy of heads: the Jensen–Shannon divergence of scipy, row by row."""

import numpy as np
import pytest
import torch
from scipy.spatial.distance import jensenshannon
from subjects import LONG, OTHER, SHORT, TEXTS, random_attention
from subjects import subject as subject_of

import attlas
from attlas.errors import UsageError
from attlas.heads.redundancy import divergences
from attlas.results import HeadRedundancy


def by_scipy(one, other):
    rows = zip(one, other, strict=True)
    return np.mean([jensenshannon(a, b, base=2) ** 2 for a, b in rows])


def test_every_two_heads_are_compared_row_by_row():
    subject = subject_of("sequence classification")
    texts = [LONG, SHORT, OTHER]
    expected = np.zeros((8, 8))
    for text in texts:
        heads = np.concatenate(subject.attention(text).weights).astype(np.float64)
        expected += [[by_scipy(a, b) for b in heads] for a in heads]
    found = attlas.head_redundancy(subject, texts)
    np.testing.assert_allclose(found.distances, expected / 3, atol=1e-6)
    assert found.examples == 3 and found.heads[5] == ("encoder.1", 1)


def test_the_ends_of_the_scale():
    same = random_attention(1, 1, 3, 3).repeat(1, 2, 1, 1)
    np.testing.assert_allclose(divergences(same), np.zeros((1, 2, 2)), atol=1e-6)
    apart = torch.zeros(1, 2, 1, 4)
    apart[0, 0, 0, :2], apart[0, 1, 0, 2:] = 0.5, 0.5
    np.testing.assert_allclose(divergences(apart), [[[0, 1], [1, 0]]], atol=1e-6)


def test_the_nearest_come_first_and_each_pair_once():
    found = attlas.head_redundancy(subject_of("sequence classification"), [LONG])
    pairs = found.nearest(100)
    assert len(pairs) == 28 and pairs == sorted(pairs, key=lambda pair: pair[2])
    table = found.to_pandas()
    assert all(table.loc[one, other] == distance for one, other, distance in pairs)


def test_heads_of_different_kinds_are_not_compared(tmp_path):
    task = "sequence to sequence"
    found = attlas.head_redundancy(subject_of(task), TEXTS[task][:1])
    kinds = np.array([site.split(".")[0] for site, _ in found.heads])
    assert set(kinds) == {"encoder", "decoder", "cross"}
    assert np.array_equal(np.isfinite(found.distances), kinds[:, None] == kinds[None])
    again = HeadRedundancy.load(found.save(tmp_path / "pairs"))
    np.testing.assert_array_equal(again.distances, found.distances)
    assert again.payload() == found.payload()


def test_no_text_is_an_error():
    with pytest.raises(UsageError, match="at least one text or picture"):
        attlas.head_redundancy(subject_of("image classification"), [])


def test_pictures_are_compared_too():
    task = "image classification"
    assert attlas.head_redundancy(subject_of(task), TEXTS[task]).examples == 3


def test_the_old_name_of_the_data_still_works():
    subject = subject_of("sequence classification")
    with pytest.warns(FutureWarning, match="texts= is called data= now"):
        old = attlas.head_redundancy(subject, texts=[LONG, SHORT])
    np.testing.assert_array_equal(
        old.distances, attlas.head_redundancy(subject, [LONG, SHORT]).distances
    )


def test_a_list_of_pairs_of_texts_is_still_read_as_such():
    subject = subject_of("next sentence")
    pairs = TEXTS["next sentence"]
    with pytest.warns(FutureWarning, match=r"write a pair of texts as \(\(text, text\), label\)"):
        old = attlas.head_redundancy(subject, pairs)
    new = attlas.head_redundancy(subject, [(pair, None) for pair in pairs])
    np.testing.assert_array_equal(old.distances, new.distances)
    assert old.examples == 3
