"""Explanations of one text side by side: worked out by hand, and what cannot be compared."""

import re

import numpy as np
import pytest
from results.records import film, origin

import attlas
from attlas.errors import UsageError
from attlas.results import TargetRecord
from attlas.tokens import Tokens


def pieces(text, spans, **changes):
    """An explanation of a text cut at these places, scored 1, 2, 3, … unless given."""
    tokens = Tokens(
        tuple(text[slice(*span)] if span else "[S]" for span in spans),
        tuple(spans),
        tuple(span is None for span in spans),
        ("text",) * len(spans),
        {"text": text},
    )
    scores = changes.pop("scores", list(range(1, len(spans) + 1)))
    return film(tokens=tokens, scores=np.array(scores, dtype=np.float64), **changes)


def unsigned(method="raw_attention", **changes):
    return origin(method=method, signed=False, **changes)


def test_words_hold_the_sums_of_their_tokens_and_special_tokens_are_left_out():
    other = film(scores=np.array([9.0, 1.0, 2.0, 3.0, 4.0, 0.5, 9.0]), origin=unsigned())
    found = attlas.compare([film(), other])
    assert [word.text for word in found.words] == ["Not", "good", "films", "!"]
    assert found.scores.tolist() == [[-2.0, 1.0, 0.75, 0.125], [1.0, 2.0, 7.0, 0.5]]
    assert found.limits == (2.0, 7.0)
    assert found.names == ("gradient_attention", "raw_attention")
    assert found.headline == "Do gradient_attention and raw_attention agree?"


def test_agreement_is_known_by_hand():
    text, spans = "a b c d", [(0, 1), (2, 3), (4, 5), (6, 7)]
    one = pieces(text, spans, scores=[4, 3, 2, 1], origin=origin(method="one"))
    other = pieces(text, spans, scores=[4, 3, 1, 2], origin=origin(method="other"))
    back = pieces(text, spans, scores=[1, 2, 3, 4], origin=origin(method="back"))
    found = attlas.compare([one, other, back], top=2)
    # Of six pairs, one is turned around: 5/6 − 1/6; all six of them, and five of six.
    assert [each.tau for each in found.agreement] == pytest.approx([2 / 3, -1.0, -2 / 3])
    assert [each.overlap for each in found.agreement] == [1.0, 0.0, 0.0]
    assert [each.chance for each in found.agreement] == [0.5] * 3
    assert {each.by for each in found.agreement} == {"score"}
    assert found.headline == "Do these 3 methods agree?"
    table = found.agreement_table()
    assert table["one"].tolist() == ["one", "one", "other"]


def test_a_sign_and_a_strength_are_compared_by_strength():
    text, spans = "a b c", [(0, 1), (2, 3), (4, 5)]
    signed = pieces(text, spans, scores=[-3, 2, 1])
    plain = pieces(text, spans, scores=[30, 20, 10], origin=unsigned())
    (pair,) = attlas.compare([signed, plain]).agreement
    assert (pair.tau, pair.by) == (pytest.approx(1.0), "strength")
    both = attlas.compare(
        [signed, pieces(text, spans, scores=[3, 2, 1], origin=origin(method="b"))]
    )
    assert both.agreement[0].tau == pytest.approx(-1 / 3)
    rows = attlas.compare([signed, plain]).difference()
    assert rows["difference"].tolist() == pytest.approx([0.0, 0.0, 0.0])
    assert both.difference()["difference"].tolist() == pytest.approx([-2.0, 0.0, 0.0])


def test_equal_scores_have_no_order():
    text, spans = "a b", [(0, 1), (2, 3)]
    flat = pieces(text, spans, scores=[1, 1], origin=unsigned("flat"))
    (pair,) = attlas.compare([pieces(text, spans, origin=unsigned()), flat]).agreement
    assert pair.tau is None


def test_tokenizers_may_cut_a_text_differently():
    text = "unbelievably good, really"
    words = [(0, 12), (13, 17), (17, 18), (19, 25)]
    fine = pieces(text, [None, (0, 2), (2, 12), (13, 17), (17, 18), (19, 25), None])
    spaced = pieces(text, [(0, 12), (12, 17), (17, 18), (18, 25)], origin=origin(model="other"))
    found = attlas.compare([fine, spaced])
    assert [word.text for word in found.words] == ["unbelievably", "good", ",", "really"]
    assert [word.positions for word in found.words][:2] == [((1, 2), (0,)), ((3,), (1,))]
    assert found.scores.tolist() == [[5.0, 4.0, 5.0, 6.0], [1.0, 2.0, 3.0, 4.0]]
    assert found.names == ("sentiment", "other") and found.differs == "models"
    joined = pieces(text, [(0, 17), *words[2:]], origin=origin(model="other"))
    assert [word.text for word in attlas.compare([fine, joined]).words] == [
        *("unbelievably good", ",", "really")
    ]


def written(text, **changes):
    """An explanation of a text whose words are its tokens."""
    spans = [match.span() for match in re.finditer(r"\S+", text)]
    return pieces(text, spans, **changes)


def test_a_word_that_replaces_another_is_compared_with_it():
    found = attlas.compare([written("warm film"), written("icy film")])
    assert [word.texts for word in found.words] == [("warm", "icy"), ("film", "film")]
    assert [word.spans for word in found.words] == [((0, 4), (0, 3)), ((5, 9), (4, 8))]
    assert found.names == ("warm film", "icy film") and found.differs == "texts"
    assert found.headline == "Are these 2 texts explained alike?"


def test_texts_of_other_lengths_are_aligned_and_only_what_is_in_both_is_compared():
    long = written("A long and warm film", scores=[1, 9, 1, 3, 2])
    short = written("a warm little film", scores=[4, 2, 7, 1])
    found = attlas.compare([long, short])
    assert [word.texts for word in found.words] == [
        *(("A", "a"), ("long", ""), ("and", ""), ("warm", "warm"), ("", "little"), ("film", "film"))
    ]
    np.testing.assert_equal(found.scores, [[1, 9, 1, 3, np.nan, 2], [4, np.nan, np.nan, 2, 7, 1]])
    assert found.limits == (9.0, 7.0)
    (pair,) = found.agreement
    # "a", "warm", "film": 1, 3, 2 and 4, 2, 1 order one pair of three alike.
    assert (pair.words, pair.tau) == (3, pytest.approx(-1 / 3))
    assert found.top == 1 and pair.chance == pytest.approx(1 / 3)
    rows = found.difference()
    assert rows["word"].tolist() == ["A", "warm", "film"]
    wanted = [1 / 9 - 4 / 7, 3 / 9 - 2 / 7, 2 / 9 - 1 / 7]
    assert rows["difference"].tolist() == pytest.approx(wanted)
    assert np.isnan(found.to_pandas()[found.names[1]]).sum() == 2
    with pytest.raises(UsageError, match="1 to 3 here, not 4"):
        attlas.compare([long, short], top=4)


def test_texts_that_are_aligned_are_saved_and_shown(tmp_path):
    found = attlas.compare([written("a warm film"), written("film of a year or so")])
    loaded = attlas.Comparison.load(found.save(tmp_path / "found.attlas"))
    assert loaded.payload() == found.payload()
    one, other = found.payload()["rows"]
    assert [word and word["text"] for word in other["words"]].count(None) == 2
    assert one["sources"] == {"text": "a warm film"} and None in one["scores"]


def test_a_third_text_is_aligned_with_what_the_second_added():
    texts = ["a film", "a very warm film", "a very warm evening film indeed"]
    found = attlas.compare([written(text) for text in texts])
    assert [each.words for each in found.agreement] == [2, 2, 4]
    assert [word.text for word in found.words] == texts[2].split()


def test_texts_with_nothing_in_common():
    with pytest.raises(UsageError, match="no word in common"):
        attlas.compare([written("warm"), written("cold and wet")])
    found = attlas.compare([written("a warm film"), written("a film"), written("oh no no no no")])
    assert [each.words for each in found.agreement] == [2, 0, 0]
    assert [each.tau for each in found.agreement][1:] == [None, None]


def test_white_space_that_only_one_has_as_a_token_is_left_out():
    text = "a\n\nb"
    lines = pieces(text, [(0, 1), (1, 3), (3, 4)])
    plain = pieces(text, [(0, 1), (3, 4)], origin=unsigned())
    assert [word.text for word in attlas.compare([lines, plain]).words] == ["a", "b"]


def test_a_word_that_only_one_scores_is_an_error():
    whole = pieces("a b c", [(0, 1), (2, 3), (4, 5)])
    cut = pieces("a b c", [(0, 1), (2, 3)], origin=unsigned())
    with pytest.raises(UsageError, match="raw_attention has no score for 'c', which another has"):
        attlas.compare([whole, cut])


def test_names_say_what_tells_them_apart():
    targets = [film(target=TargetRecord(name, "logit", 1.0)) for name in ("GOOD", "BAD")]
    assert attlas.compare(targets).names == ("GOOD", "BAD")
    options = [film(origin=origin(options={"layer": layer})) for layer in (0, 1)]
    assert attlas.compare(options).names == (
        "gradient_attention(layer=0)",
        "gradient_attention(layer=1)",
    )
    part = film(origin=origin(options={}).followed_by(".without_sinks()"))
    assert attlas.compare([film(origin=origin(options={})), part]).names == (
        "gradient_attention",
        "gradient_attention.without_sinks()",
    )
    assert attlas.compare([film(), film()]).names == ("(1)", "(2)")
    assert attlas.compare([film(), film()], names=["x", "y"]).names == ("x", "y")


def test_long_texts_are_named_by_where_they_differ():
    start = "a film that nobody who has seen it will ever"
    texts = [f"{start} forget", f"{start} forgive or recommend to anybody at all"]
    named = [pieces(text, [(0, 6), (7, len(text))]) for text in texts]
    names = attlas.compare(named).names
    assert names == ("…forget", "…forgive or recommend to anybod…")
    assert max(len(name) for name in names) == 32
    apart = [pieces(text, [(0, 1)]) for text in ("a" * 40, "b" * 40)]
    assert attlas.compare(apart).names == ("a" * 31 + "…", "b" * 31 + "…")


@pytest.mark.parametrize(
    ("given", "named", "told"),
    [
        ([film()], {}, "two explanations or more, not 1"),
        ([], {}, "two explanations or more, not 0"),
        (film(), {}, r"a list of explanations: attlas.compare\(\[e1, e2\]\)"),
        ([film(), "text"], {}, "takes explanations, not str"),
        ([film(), film()], {"top": 0}, "1 to 4 here, not 0"),
        ([film(), film()], {"top": 9}, "1 to 4 here, not 9"),
        ([film(), film()], {"names": ["one"]}, "2 different names, one for each"),
        ([film(), film()], {"names": ["one", "one"]}, "2 different names, one for each"),
        ([film(), film()], {"tops": 2}, "unknown argument of compare 'tops'.*'top'"),
    ],
)
def test_a_mistake_is_told_in_one_line(given, named, told):
    with pytest.raises(UsageError, match=told):
        attlas.compare(given, **named)


def test_parts_that_differ_cannot_be_compared():
    tokens = Tokens(
        ("a", "b"), ((0, 1), (0, 1)), (False,) * 2, ("one", "two"), {"one": "a", "two": "b"}
    )
    pair = film(tokens=tokens, scores=np.array([1.0, 2.0]))
    with pytest.raises(UsageError, match=r"scores text and .* one, two: only"):
        attlas.compare([film(), pair])


def test_patches_are_compared_in_their_order():
    tokens = Tokens(
        ("0,0", "0,1"), (None,) * 2, (False,) * 2, ("image",) * 2, grids={"image": (1, 2)}
    )
    picture = np.zeros((2, 4, 3), dtype=np.uint8)
    one = film(tokens=tokens, scores=np.array([1.0, 2.0]), pictures={"image": picture})
    other = film(tokens=tokens, scores=np.array([3.0, 1.0]), origin=unsigned())
    found = attlas.compare([one, other])
    assert found.scores.tolist() == [[1.0, 2.0], [3.0, 1.0]]
    assert found.payload()["pictures"][0]["image"].startswith("data:image/png")


def test_pictures_are_saved_and_the_numbers_are_shown(tmp_path):
    tokens = Tokens(
        ("0,0", "0,1"), (None,) * 2, (False,) * 2, ("image",) * 2, grids={"image": (1, 2)}
    )
    picture = np.full((2, 4, 3), 7, dtype=np.uint8)
    one = film(tokens=tokens, scores=np.array([1.0, 2.0]), pictures={"image": picture})
    found = attlas.compare([one, film(tokens=tokens, scores=np.array([2.0, 1.0]))])
    loaded = attlas.Comparison.load(found.save(tmp_path / "found.attlas"))
    assert loaded.payload() == found.payload()
    assert found.to_pandas()["(1)"].tolist() == [1.0, 2.0]
    assert repr(found) == "Comparison((1) and (2) τ -1.00)"


def test_the_code_computes_it_again():
    other = film(origin=unsigned(options={}))
    assert attlas.compare([film(), other]).code().splitlines() == [
        "import attlas",
        "subject = attlas.load('sentiment')",
        "e1 = attlas.explain(subject, 'Not good films!', target='NEGATIVE', "
        "method='gradient_attention', layer=-1, positive=False)",
        "e2 = attlas.explain(subject, 'Not good films!', target='NEGATIVE', "
        "method='raw_attention')",
        "attlas.compare([e1, e2])",
    ]
    models = attlas.compare([film(), film(origin=origin(model="other"))]).code().splitlines()
    assert models[:2] == ["import attlas", "subject = attlas.load('sentiment')"]
    assert models[3] == "subject = attlas.load('other')"
