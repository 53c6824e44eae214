"""The licence of a heat map, where the truth is known: bags of words, and scores made of them."""

from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest
from known_models import bag_of_words
from subjects import TEXTS, subject

import attlas
from attlas.errors import UsageError
from attlas.explaining.licensing import HeatMap, licences, text_seed, two_removals
from attlas.models.encoding.request import Request
from attlas.results import Explanation
from attlas.results.support.licence import CANNOT, MAY, MAY_NOT, WORDS, Licence

WEIGHTS = {"fine": 1.3, "dull": -0.9, "warm": 0.5} | {f"w{n}": 0.02 * n for n in range(8)}
WORDS_OF_TEXT = ["w1", "dull", "w3", "fine", "w0", "warm", "w5", "w2", "w4"]
TEXT = " ".join(WORDS_OF_TEXT)
TRUTH = np.array([WEIGHTS[word] for word in WORDS_OF_TEXT])
BAG = bag_of_words(WEIGHTS)


def licence(scores, text=TEXT, signed=True, seed=0, model=BAG, **asked):
    erasures = two_removals(model.ask([text], Request(**asked)))
    heat_map = HeatMap(0, np.array(scores, dtype=float), signed, text_seed(text, seed))
    return licences(erasures, [heat_map])[0]


def test_the_size_of_the_truth_may_be_read_as_where_with_or_without_its_sign():
    for scores in (TRUTH, np.abs(TRUTH), -TRUTH):
        found = licence(scores)
        assert found.word == MAY
        assert [row.removal for row in found.removals] == ["delete", "mask"]
        assert all(0.9 < row.share <= 1 and row.p < 0.01 for row in found.removals)
        assert all(row.reliability > 0.9 for row in found.removals)
    assert "chance" in found.why


def test_scores_at_other_tokens_may_not():
    found = licence(1 / (0.01 + np.abs(TRUTH)))
    assert found.word == MAY_NOT and all(row.share < 0 for row in found.removals)
    assert licence(np.ones(9)).word == MAY_NOT  # they point nowhere


def test_where_no_token_matters_more_than_another_it_cannot_be_told():
    constant = bag_of_words(dict.fromkeys(WEIGHTS, 0.0))
    found = licence(TRUTH, model=constant)
    assert found.word == CANNOT and "No token matters more" in found.why
    assert all(row.share is None for row in found.removals)


@pytest.mark.parametrize("count", [1, 2, 3])
def test_of_too_few_tokens_it_cannot_be_told(count):
    words = ["fine", "w1", "dull"][:count]
    found = licence([3, 1, 2][:count], " ".join(words))
    assert found.word == CANNOT and f"{count} content" in found.why
    # The right order of three comes by chance in one of six.
    assert count < 3 or all(row.p == pytest.approx(1 / 6) for row in found.removals)


def test_p_is_exact_up_to_seven_tokens():
    words = ["fine", "w1", "dull", "w2"]
    found = licence([4, 1, 3, 2], " ".join(words))
    assert found.exact and all(row.p == pytest.approx(1 / 24) for row in found.removals)
    assert not licence(TRUTH).exact


def test_a_good_place_that_may_be_luck_cannot_be_told():
    found = licence([4, 2, 3, 1], "fine w1 dull w2")  # the second-best order
    assert found.word == CANNOT and "luck" in found.why
    assert all(row.share > 0.9 and row.p == pytest.approx(2 / 24) for row in found.removals)
    found = licence([4, 3, 1, 2], "fine w1 dull w2")  # several are better
    assert found.word == MAY_NOT and "of all orders" in found.why
    assert all(row.share > 0.3 and row.p > 0.1 for row in found.removals)


def says(words):
    return sum(WEIGHTS[word] for word in words) > 0


def test_the_sets_are_as_small_as_any():
    """All subsets are asked by hand: a bag is monotone enough for the greedy search."""
    found = licence(TRUTH)
    everything = range(len(WORDS_OF_TEXT))
    smallest = {}
    for size in range(len(WORDS_OF_TEXT) + 1):
        for chosen in combinations(everything, size):
            inside = [WORDS_OF_TEXT[place] for place in chosen]
            outside = [WORDS_OF_TEXT[place] for place in everything if place not in chosen]
            if says(inside):
                smallest.setdefault("enough", size)
            if not says(outside):
                smallest.setdefault("needed", size)
    for row in found.removals:
        words = {name: [WORDS_OF_TEXT[place - 1] for place in getattr(row, name)]
                 for name in ("enough", "needed")}  # fmt: skip
        assert says(words["enough"])
        assert not says([word for word in WORDS_OF_TEXT if word not in words["needed"]])
        assert len(words["enough"]) == smallest["enough"]
        assert len(words["needed"]) == smallest["needed"]


def test_of_a_target_that_is_not_predicted_no_set_is_enough():
    found = licence(TRUTH, target="NEGATIVE")
    assert all(row.enough is None and row.needed is None for row in found.removals)


def test_which_way():
    signed, weights = licence(TRUTH), licence(np.abs(TRUTH), signed=False)
    for row in signed.removals:
        assert row.right_way > 0.97
    for row, other in zip(weights.removals, signed.removals, strict=True):
        assert 0.5 < row.right_way < 0.8  # "dull" is dark, and speaks against
        assert row.for_target == other.for_target


def test_many_texts_have_what_each_has_alone():
    texts = [TEXT, "fine w1 dull w2 w3", TEXT, "w1"]
    scores = [TRUTH, np.arange(5.0), np.abs(TRUTH)[::-1].copy(), np.ones(1)]
    erasures = two_removals(BAG.ask(texts, Request()))
    maps = [
        HeatMap(number, each, True, text_seed(text))
        for number, (text, each) in enumerate(zip(texts, scores, strict=True))
    ]
    together = licences(erasures, maps)
    for text, each, found in zip(texts, scores, together, strict=True):
        alone = licence(each, text)
        assert found.word == alone.word
        for row, other in zip(found.removals, alone.removals, strict=True):
            assert (row.enough, row.needed) == (other.enough, other.needed)
            assert (row.share or 0.0) == pytest.approx(other.share or 0.0, rel=1e-4)


# Through the verbs


def test_explain_gives_a_licence_that_can_be_kept(tmp_path):
    made = attlas.explain(BAG, [TEXT, "fine w1 w2"], "input_x_gradient", licence=True)
    assert [each.licence.word for each in made] == [MAY, CANNOT]
    assert made[0].licence.removals[0].share > 0.9
    assert attlas.explain(BAG, TEXT, "input_x_gradient").licence is None
    again = Explanation.load(made[0].save(tmp_path / "kept.safetensors"))
    assert again.licence == made[0].licence
    assert Explanation.from_dict(made[0].to_dict()).licence == made[0].licence
    assert "licence=True" in made[0].code()
    assert made[0].payload()["licence"]["word"] in WORDS


def test_a_record_without_a_licence_is_what_it_was():
    record = attlas.explain(BAG, TEXT, "gradient").to_dict()
    assert "licence" not in record
    assert Explanation.from_dict(record).licence is None


def test_judge_gives_the_same_licence():
    explained = attlas.explain(BAG, TEXT, "input_x_gradient", licence=True)
    judged = attlas.judge(BAG, explained, "location", shuffles=3)
    assert judged.licence == explained.licence
    assert [row.value for row in judged.measured] == [
        pytest.approx(row.capture) for row in explained.licence.removals
    ]
    assert attlas.judge(BAG, explained, "log_odds", shuffles=3).licence is None
    assert attlas.judge(BAG, explained, "location", shuffles=3, removal="mask").licence is None


def test_what_has_no_probability_is_refused_in_one_line():
    with pytest.raises(UsageError, match="is a value: it has no probability"):
        attlas.explain(subject("regression"), TEXTS["regression"][0], "gradient", licence=True)
    with pytest.raises(UsageError, match="is contrasted with"):
        attlas.explain(BAG, TEXT, "gradient", "POSITIVE", contrast="NEGATIVE", licence=True)


@pytest.mark.parametrize(
    "task", ["causal lm", "masked lm", "image classification", "next sentence"]
)
def test_other_models(task):
    found = attlas.explain(subject(task), TEXTS[task][0], "gradient", licence=True).licence
    names = [row.removal for row in found.removals]
    assert found.word in WORDS and found.why.endswith(".")
    if task == "masked lm":
        assert "delete" not in names and len(names) == 2
    if task == "image classification":
        assert names == ["mask"] and found.word == CANNOT


def test_scores_without_their_sinks_have_no_licence():
    made = attlas.explain(BAG, TEXT, "raw_attention", licence=True)
    scores = made.scores.copy()
    scores[0] = 10 * scores.sum()
    assert replace(made, scores=scores).without_sinks().licence is None


def test_the_word_hardly_depends_on_the_seed():
    found = [licence(TRUTH + 0.1, seed=seed).word for seed in range(3)]
    assert set(found) == {MAY}


def test_a_licence_says_itself():
    made = licence(TRUTH)
    assert str(made).startswith("May be read as where. The largest")
    assert Licence.from_dict(made.to_dict()) == made
