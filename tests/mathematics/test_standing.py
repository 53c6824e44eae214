"""Where methods stand: s by its definition, and intervals that allow for what was not seen."""

import numpy as np
import pytest

from attlas.mathematics.intervals import Estimate, allow_unseen
from attlas.mathematics.standing import (
    Locations,
    MethodComparison,
    contrasts,
    effective_texts,
    mean_rooms,
    select_texts,
    standing,
    standings,
    text_count,
    texts_with_room,
    typical_rooms,
)

RANDOM = np.random.default_rng(0)
BEST = RANDOM.random(40)
FOUND = BEST * RANDOM.uniform(0, 1, 40)
EVIDENCE = {
    "delete": Locations(BEST, 2 * BEST, {"a": FOUND, "b": 0.5 * BEST, "all": BEST}),
    "mask": Locations(BEST / 2, BEST, {"a": FOUND / 4, "b": 0.1 * BEST, "all": BEST / 2}),
}


def ask(method, other=None, removals=("delete",)):
    return MethodComparison(method, other, removals)


def test_s_is_what_is_found_by_what_could_be():
    assert standing(EVIDENCE, ask("a")) == pytest.approx(FOUND.sum() / BEST.sum())
    assert standing(EVIDENCE, ask("all")) == pytest.approx(1)
    assert standing(EVIDENCE, ask("b", "all")) == pytest.approx(-0.5)
    both = standing(EVIDENCE, ask("b", None, ("delete", "mask")))
    assert both == pytest.approx((0.5 + 0.2) / 2)
    nothing = {"mask": Locations(np.zeros(3), np.zeros(3), {"a": np.zeros(3)})}
    assert np.isnan(standing(nothing, ask("a", None, ("mask",))))


def test_a_text_without_a_value_is_left_out_of_both_sums():
    found = FOUND.copy()
    found[:5] = np.nan
    own = {"delete": Locations(BEST, BEST, {"a": found})}
    assert standing(own, ask("a")) == pytest.approx(FOUND[5:].sum() / BEST[5:].sum())
    assert standings(own, [ask("a")])[0].inputs == 35


@pytest.mark.parametrize("count", [3, 12, 40])
def test_no_interval_is_without_width_and_none_leaves_its_range(count):
    own = select_texts(EVIDENCE, np.arange(count))
    assert text_count(own) == count
    found = standings(own, [ask("all"), ask("a"), ask("b", "a"), ask("a", "all")])
    for each, most in zip(found, (1, 1, 2, 2), strict=True):
        assert -most <= each.low <= each.mean <= each.high <= most
        assert each.high - each.low > 0
    # Three texts, all alike, say nothing about a fourth kind.
    assert found[0].low <= max(1 - 2 * 3 / count, -1) + 1e-9


def test_an_interval_allows_for_the_reverse_on_three_of_the_effective_texts():
    even = {"mask": Locations(np.ones(30), np.ones(30), {"all": np.ones(30)})}
    (found,) = standings(even, [ask("all", None, ("mask",))])
    assert (found.low, found.high) == pytest.approx((1 - 2 * 0.1, 1))


def test_the_effective_texts_are_those_that_carry_the_sum():
    assert effective_texts(np.ones(25)) == pytest.approx(25)
    assert effective_texts(np.r_[np.ones(4), np.zeros(96)]) == pytest.approx(4)
    assert effective_texts(np.zeros(5)) == 0 and effective_texts(-np.ones(5)) == 0
    assert effective_texts(np.ones(20), np.repeat(np.arange(5), 4)) == pytest.approx(5)


def test_how_much_there_is_to_find_and_on_how_many_texts():
    rooms = np.r_[np.full(10, 0.4), np.zeros(30)]
    own = {"mask": Locations(rooms, 2 * rooms, {})}
    assert typical_rooms(own)["mask"].mean == pytest.approx(0.4)
    mean = mean_rooms(own)["mask"]
    assert mean.mean == pytest.approx(0.1) and mean.high >= 0.1 + 3 / 40 * 0.9
    share = texts_with_room(rooms, 0.02)
    assert share.mean == 0.25 and 0.1 < share.low < 0.25 < share.high < 0.45
    assert texts_with_room(rooms, 0.02, np.repeat(np.arange(8), 5)).inputs == 8
    assert contrasts(own)["mask"].mean == pytest.approx(0.5)


def test_texts_on_which_nothing_matters_leave_open_what_others_hold():
    nothing = {"mask": Locations(np.zeros(20), np.zeros(20), {})}
    assert typical_rooms(nothing)["mask"].high == 0
    assert contrasts(nothing)["mask"].high == pytest.approx(1)
    assert mean_rooms(nothing)["mask"].high == pytest.approx(3 / 20)


def test_what_was_not_seen_may_lie_anywhere_and_weigh_as_much_as_can_be():
    found = Estimate(0.5, 0.45, 0.55, 60)
    even = allow_unseen(found, np.ones(60))  # three of sixty: a twentieth
    assert (even.low, even.high) == pytest.approx((0.45, 0.55), abs=0.03)
    assert even.high == pytest.approx(0.5 + 0.05 * 0.5 / (0.05 + 0.95) + 0, abs=0.03)
    light = allow_unseen(found, np.full(60, 0.05))  # a heavy text would weigh more than all these
    unseen = 0.05 / (0.05 + 0.95 * 0.05)
    assert light.high == pytest.approx(0.5 + unseen * 0.5)
    assert light.low == pytest.approx(0.5 - unseen * 0.5)
    three = allow_unseen(found, np.ones(3))
    assert (three.low, three.high) == (0, 1)
    unknown = allow_unseen(Estimate(np.nan, np.nan, np.nan, 4), np.zeros(4))
    assert (unknown.mean, unknown.low, unknown.high) == (0, 0, 1)
