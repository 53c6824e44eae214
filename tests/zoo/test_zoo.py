"""The models of the zoo are what they are said to be, by what happens if words are removed."""

from collections import Counter
from functools import cache

import numpy as np
import pytest
from zoo.drawing import draw, evidence, is_monotone, tally
from zoo.kinds import KINDS, NOT, PARTLY, SUPPORTED, ZOO

from attlas.mathematics.token_effects import capture
from attlas.measures import Case
from attlas.measures.support.recomputing import Recipe
from attlas.measures.support.walks import effects_of, walks
from attlas.methods import METHODS
from attlas.models.encoding.request import Request
from attlas.removing.erasures import Erasures
from attlas.results.support.verdict import GridWord, Verdict

WORDS = {SUPPORTED, PARTLY, NOT}
FEW = "too few texts"
READINGS = ("raw_attention", "attention_rollout", "effective_attention")
COUNT = 24
QUICK = ("one word", "trigger")
LONG, TAGGER = "three hundred tokens", "tagger"


@cache
def subject(name):
    return ZOO[name].make()


def location(name, how):
    """What each reading of the weights comes upon early, and the best order, on some texts.

    And how much the token matters that matters most.
    """
    texts = [each.text for each in ZOO[name].examples(COUNT)]
    questions = list(subject(name).ask(texts, Request()))
    erasures = Erasures(questions, how)
    found, best, most = Counter(), 0.0, 0.0
    for reading in READINGS:
        for question in questions:
            for index, scores in Recipe(METHODS[reading], {}).content_scores(question):
                case = Case(scores, index)
                effects = effects_of(case, erasures.of(index, walks(case)))
                found[reading] += capture(scores, effects.importance) / COUNT
                best += effects.best_capture / COUNT / len(READINGS)
                most += effects.importance.max() / COUNT / len(READINGS)
    return found, best, most


def test_names_differ_and_words_are_known():
    assert len(ZOO) == len(KINDS)
    assert all(set(kind.right) <= WORDS and kind.why for kind in KINDS)


@pytest.mark.parametrize("name", ZOO)
def test_texts_differ_and_are_drawn_by_the_seed(name):
    texts = [each.text for each in ZOO[name].examples(50)]
    assert len(set(texts)) == 50
    assert texts == [each.text for each in ZOO[name].examples(50)]
    assert texts != [each.text for each in ZOO[name].examples(50, seed=1)]


def test_words_that_decide_are_as_frequent_as_others_and_stand_anywhere():
    texts = [each.text.split() for each in ZOO["one word"].examples(4000)]
    counts = Counter(word for text in texts for word in text)
    deciding = [count for word, count in counts.items() if "filler" not in word]
    fillers = [count for word, count in counts.items() if "filler" in word]
    assert np.mean(deciding) == pytest.approx(np.mean(fillers), rel=0.05)
    places = [next(i for i, w in enumerate(t) if "filler" not in w) / (len(t) - 1) for t in texts]
    assert np.mean(places) == pytest.approx(0.5, abs=0.03)


@pytest.mark.parametrize("name", QUICK)
def test_attention_finds_the_word_that_decides(name):
    for how in ("delete", "mask"):
        found, best, _ = location(name, how)
        assert best > 0.2
        assert max(found.values()) == pytest.approx(best, rel=0.05)


def test_kept_weights_give_the_same_model(tmp_path):
    kind = ZOO["constant"]
    trained, kept = (kind.make(1, tmp_path).model.state_dict() for _ in range(2))
    assert all(trained[name].equal(kept[name]) for name in trained)
    assert not trained["classifier.bias"].equal(kind.make(2).model.state_dict()["classifier.bias"])


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in ZOO if name not in (*QUICK, LONG, TAGGER)])
def test_weights_find_what_matters_where_they_are_said_to(name):
    """The figures lie on the right side of the thresholds by a wide margin."""
    found = [location(name, how) for how in ("delete", "mask")]
    shares = [(max(own.values()), best) for own, best, _ in found]
    if ZOO[name].right == (SUPPORTED,):
        assert all(best > 0.05 and own > 0.85 * best for own, best in shares)
    elif ZOO[name].right == (PARTLY,):
        assert all(best > 0.05 and 0.4 * best < own < 0.85 * best for own, best in shares)
    elif ZOO[name].right == (NOT,):
        assert all(best < 0.05 or own < 0.2 * best for own, best in shares)


@pytest.mark.slow
def test_attention_finds_the_word_among_three_hundred():
    """The best order is found too high where tokens go together and nothing else matters."""
    for how in ("delete", "mask"):
        found, best, most = location(LONG, how)
        assert most > 0.4 and 0.95 * most < max(found.values()) <= best


@pytest.mark.slow
def test_one_reading_of_a_tagger_finds_the_word_and_raw_attention_misleads():
    found, best, _ = location(TAGGER, "mask")
    assert found["attention_rollout"] > 0.85 * best > 0.2 and found["raw_attention"] < 0
    found, best, _ = location(TAGGER, "knock_out")
    assert max(found.values()) > 0.85 * best > 0.2


@pytest.mark.slow
@pytest.mark.parametrize("name", ["one word", "moved on", "uniform", "length"])
def test_draws_of_texts_give_the_right_word(name):
    found = tally(ZOO[name], list(draw(evidence(ZOO[name], 240), 120, 20)))
    assert found.right >= 19
    assert found.opposite == 0
    assert found.monotone == 20


FLOORS, MARGINS = (0.2, 0.3), (0.05, 0.1)


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ([SUPPORTED, SUPPORTED, PARTLY, SUPPORTED], True),
        ([PARTLY, SUPPORTED, FEW, FEW], True),
        ([PARTLY, SUPPORTED, NOT, FEW], True),
        ([SUPPORTED, PARTLY, SUPPORTED, PARTLY], False),
        ([NOT, NOT, NOT, PARTLY], False),
    ],
)
def test_a_grid_is_monotone_if_no_threshold_helps_the_wrong_way(words, expected):
    places = [(floor, margin) for floor in FLOORS for margin in MARGINS]
    grid = [GridWord(*place, word) for place, word in zip(places, words, strict=True)]
    assert is_monotone(grid) == expected


def test_too_few_texts_between_two_equal_words_is_not_monotone():
    grid = [GridWord(floor, 0.1, word) for floor, word in ((0.2, NOT), (0.3, FEW), (0.4, NOT))]
    assert not is_monotone(grid)


@pytest.mark.parametrize(
    ("kind", "words", "right", "opposite"),
    [
        ("one word", [SUPPORTED, PARTLY, NOT, FEW], 1, 1),
        ("moved on", [SUPPORTED, PARTLY, NOT, FEW], 1, 0),
        ("untrained, large weights", [SUPPORTED, PARTLY, NOT, FEW], 2, 1),
    ],
)
def test_a_tally_counts_right_words_and_their_opposites(kind, words, right, opposite):
    verdicts = [Verdict(word, "", "", "", "raw_attention", {}, 120) for word in words]
    found = tally(ZOO[kind], verdicts)
    assert (found.right, found.opposite) == (right, opposite)
