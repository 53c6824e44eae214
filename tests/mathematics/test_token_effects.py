"""What tokens do when they go, against all orders of removing them and against known truth."""

from itertools import permutations

import numpy as np
import pytest
import tiny

from attlas import Subject
from attlas.mathematics.token_effects import (
    MOST_STEPS,
    TokenEffects,
    capture,
    capture_p,
    random_orders,
    removed_sets,
    right_way,
    token_effects,
)
from attlas.removing.erasures import Erasures

WEIGHTS = np.array([1.4, -0.9, 0.6, 0.3, -0.2, 0.1, 0.7])
CLOSE = {"atol": 1e-12, "rtol": 0}


def sure(log_odds):
    return 1 / (1 + np.exp(-log_odds))


def bag(ways):
    """The probability of one of two classes, whose log-odds are the sum of what is left."""
    return sure((~ways) @ WEIGHTS[: ways.shape[1]])


def either_or(ways):
    """High if exactly one of the first two tokens is left: each matters, whichever way."""
    return np.where(ways[:, 0] ^ ways[:, 1], 0.9, 0.2)


def both(ways):
    """High only while the first two tokens are both left, and a little higher with the third."""
    return np.where(ways[:, 0] | ways[:, 1], 0.1, 0.7) + np.where(ways[:, 2], 0.0, 0.05)


def effects_of(game, count, pairs, seed):
    orders = random_orders(count, pairs, seed)
    known = game(removed_sets(orders))
    return token_effects(orders, known, np.stack([known, 1 - known], axis=1))


def over_all_orders(known, distribution):
    """The mean move and the mean fall of each token over every order of removing all of them.

    Both tables have an entry for each set of removed tokens, the set in binary.
    """
    count = len(known).bit_length() - 1
    moves, falls, orders = np.zeros(count), np.zeros(count), 0
    for order in permutations(range(count)):
        gone, orders = 0, orders + 1
        for token in order:
            more = gone | 1 << token
            moves[token] += np.abs(distribution[more] - distribution[gone]).sum() / 2
            falls[token] += known[gone] - known[more]
            gone = more
    return moves / orders, falls / orders


def all_ways(count):
    return (np.arange(2**count)[:, None] >> np.arange(count) & 1).astype(bool)


def exact(game, count):
    known = game(all_ways(count))
    return over_all_orders(known, np.stack([known, 1 - known], axis=1))


@pytest.mark.parametrize("game", [bag, either_or, both])
@pytest.mark.parametrize("count", [3, 5, 7])
def test_many_orders_come_to_what_all_orders_say(game, count):
    moves, falls = exact(game, count)
    found = effects_of(game, count, 3000, 0)
    error = found.moves.std(axis=0) / np.sqrt(3000)
    assert (np.abs(found.importance - moves) <= 4.5 * error + 1e-12).all()
    error = found.falls.std(axis=0) / np.sqrt(3000)
    assert (np.abs(found.pull - falls) <= 4.5 * error + 1e-12).all()


@pytest.mark.parametrize("game", [bag, either_or, both])
def test_the_error_falls_as_one_over_the_root_of_the_orders(game):
    moves, falls = exact(game, 6)

    def error(pairs):
        found = [effects_of(game, 6, pairs, seed) for seed in range(60)]
        both = [(each.importance - moves, each.pull - falls) for each in found]
        return np.sqrt(np.mean(np.square(both), axis=(0, 2)))

    for large, small_ in zip(error(8), error(128), strict=True):
        if large > 1e-12:  # a pair of an order and its reverse may be exact
            assert 0.18 < small_ / large < 0.34  # a quarter


def test_an_either_or_matters_though_it_pulls_nowhere():
    found = effects_of(either_or, 4, 8, 0)
    np.testing.assert_allclose(found.importance, [0.7, 0.7, 0, 0], **CLOSE)
    # One of the two always raises and the other lowers, so an order and its reverse cancel.
    np.testing.assert_allclose(found.pull, 0, **CLOSE)


@pytest.fixture(scope="module")
def erasures():
    """A tiny model in double precision, asked about a text of six tokens."""
    model, words = tiny.subject_parts("sequence classification")
    model.classifier.weight.data.mul_(4)
    made = Erasures(Subject(model.double(), words).ask(["was a cat sat"]), "mask")
    assert len(made.content(0)) == 6
    return made


def test_of_a_model_too(erasures):
    count = len(erasures.content(0))
    answers = erasures.of(0, all_ways(count))
    assert answers.distribution.shape[1] >= 3
    moves, falls = over_all_orders(answers.probability, answers.distribution)
    orders = random_orders(count, 1500, 1)
    asked = erasures.of(0, removed_sets(orders))
    found = token_effects(orders, asked.probability, asked.distribution)
    for values, mean, truth in (
        (found.moves, found.importance, moves),
        (found.falls, found.pull, falls),
    ):
        assert truth.any()
        assert (np.abs(mean - truth) <= 4.5 * values.std(axis=0) / np.sqrt(1500) + 1e-12).all()


@pytest.mark.parametrize("count", [1, 2, 6, 64, 65, 130])
def test_the_falls_of_every_pair_of_orders_sum_to_the_whole_fall(count):
    weights = np.random.default_rng(count).normal(size=count)
    orders = random_orders(count, 5, 7)
    known = sure((~removed_sets(orders)) @ weights)
    found = token_effects(orders, known, np.stack([known, 1 - known], axis=1))
    whole, nothing = sure(weights.sum()), sure(0)
    np.testing.assert_allclose(found.falls.sum(axis=1), whole - nothing, **CLOSE)
    assert found.pull.sum() == pytest.approx(whole - nothing, abs=1e-12)


def test_orders_come_with_their_reverse_and_sets_grow_from_none_to_all():
    orders = random_orders(6, 3, 0)
    assert orders.shape == (6, 6)
    assert (np.sort(orders, axis=1) == np.arange(6)).all()
    assert (orders[::2] + orders[1::2] == 5).all()
    assert (random_orders(6, 3, 0) == orders).all() and (random_orders(6, 3, 1) != orders).any()
    sets = removed_sets(orders).reshape(6, 7, 6)
    assert (sets.sum(axis=2) == np.arange(7)).all()
    for order, grown in zip(orders, sets, strict=True):
        for step in range(6):
            (gone,) = np.flatnonzero(grown[step + 1] & ~grown[step])
            assert order[gone] == step


@pytest.mark.parametrize("count", [65, 128, 300])
def test_a_long_text_goes_in_blocks_and_its_deciding_tokens_are_found(count):
    """The truth is known: two tokens decide by a sum, two only together."""
    orders = random_orders(count, 8, count)
    sets = removed_sets(orders)
    assert len(sets) <= 16 * (MOST_STEPS + 1)
    deciding = np.random.default_rng(count).choice(count, 4, replace=False)
    one, other, third, fourth = (~sets[:, place] for place in deciding)
    known = sure(1.5 * one - 1.2 * other + 2.5 * (third & fourth))
    found = token_effects(orders, known, np.stack([known, 1 - known], axis=1))
    assert set(np.argsort(-found.importance)[:4]) == set(deciding)
    assert found.pull[deciding[0]] > 0 > found.pull[deciding[1]]
    truth = np.zeros(count)
    truth[deciding] = 1
    assert capture(truth, found.importance) > 0.9 * found.best_capture > 0


@pytest.mark.parametrize("count", [65, 130, 300, 600])
def test_one_deciding_token_of_a_long_text_has_the_whole_effect(count):
    """It goes beside ever others: they share its step, but not its effect."""
    orders = random_orders(count, 8, count)
    known = np.where(removed_sets(orders)[:, 40], 0.2, 0.9)
    found = token_effects(orders, known, np.stack([known, 1 - known], axis=1))
    assert found.importance.sum() == pytest.approx(0.7)
    assert found.importance[40] == pytest.approx(0.7, rel=0.02)
    assert found.pull[40] == pytest.approx(0.7, rel=0.02)
    assert found.best_capture == pytest.approx(0.7, rel=0.02)
    scores = np.random.default_rng(count).random(count)
    scores[40] = 2
    assert capture(scores, found.importance) == pytest.approx(0.7, rel=0.02)


def test_the_best_order_of_a_long_text_is_found_and_scored_without_the_pair_that_scores_it():
    orders = random_orders(130, 4, 0)
    known = np.random.default_rng(0).random(len(removed_sets(orders)))
    answers = np.stack([known, 1 - known], axis=1)
    found = token_effects(orders, known, answers)
    others, own = found.apart
    steps = len(known) // len(orders)
    for pair in range(4):
        rest = np.flatnonzero(np.arange(8) // 2 != pair)
        kept = (rest[:, None] * steps + np.arange(steps)).ravel()
        without = token_effects(orders[rest], known[kept], answers[kept])
        np.testing.assert_allclose(others[pair], without.importance, rtol=1e-9)
        moved = np.abs(np.diff(known.reshape(8, steps)[2 * pair : 2 * pair + 2])).sum(axis=1)
        assert own[pair].sum() == pytest.approx(moved.mean())
        assert found.best_captures[pair] == pytest.approx(capture(others[pair], own[pair]))


def test_tokens_of_a_long_text_that_all_matter_alike_stay_alike():
    orders = random_orders(200, 8, 3)
    known = 0.9 - 0.004 * removed_sets(orders).sum(axis=1)
    found = token_effects(orders, known, np.stack([known, 1 - known], axis=1))
    np.testing.assert_allclose(found.importance, 0.004, rtol=1e-9)
    assert found.best_capture == pytest.approx(0, abs=1e-9)


# Captured importance


def captured_by_hand(order, importance):
    """Σ over k of the importance of the first k, less k/n of all, as one token alone would give."""
    count = len(importance)
    total = sum(sum(importance[i] for i in order[:k]) for k in range(1, count + 1))
    chance = sum(importance) * (count + 1) / 2
    return (total - chance) / ((count - 1) / 2)


def test_capture_is_its_definition():
    importance = np.array([0.2, 0.05, 0.4, 0.0, 0.1])
    for order in permutations(range(5)):
        scores = np.empty(5)
        scores[list(order)] = [9, 7, 4, 2, 1]
        assert capture(scores, importance) == pytest.approx(captured_by_hand(order, importance))


def test_one_token_that_alone_matters_is_worth_what_it_matters():
    for count in (2, 5, 30):
        importance = np.eye(count)[0] * 0.8
        assert capture(importance, importance) == pytest.approx(0.8)
        assert capture(1 - importance, importance) < 0


@pytest.mark.parametrize("scores", [[2, 2, 1, 1, 1], [0, 0, 0, 0, 0], [-3, 3, 0, 1, -1]])
def test_ties_count_as_all_their_orders_on_average(scores):
    importance = np.array([0.2, 0.05, 0.4, 0.0, 0.1])
    sizes = np.abs(scores)
    fitting = [
        order for order in permutations(range(5)) if (np.diff(sizes[list(order)]) <= 0).all()
    ]
    expected = np.mean([captured_by_hand(order, importance) for order in fitting])
    assert len(fitting) > 1
    found = capture(np.array(scores, dtype=float), importance)
    assert found == pytest.approx(expected, abs=1e-12)


def test_only_the_order_of_the_sizes_counts():
    random = np.random.default_rng(0)
    scores, importance = random.normal(size=12), random.random(12)
    found = capture(scores, importance)
    for change in (np.cbrt, lambda x: 100 * x, lambda x: -x, np.abs, lambda x: x**2, np.arctan):
        assert capture(change(scores), importance) == found


def test_random_scores_capture_nothing_on_average():
    random = np.random.default_rng(0)
    importance = random.random(9) ** 4
    for draw in (random.random, random.standard_normal, lambda n: random.integers(3, size=n) * 1.0):
        found = np.array([capture(draw(9), importance) for _ in range(1500)])
        assert abs(found.mean()) < 4.5 * found.std() / np.sqrt(len(found))


@pytest.mark.parametrize("game", [bag, both, either_or])
def test_the_order_of_what_matters_captures_as_much_as_can_be(game):
    """Over many draws, the cross-fitted best is the capture of the true order, but for noise."""
    moves, _ = exact(game, 6)
    truth = capture(moves, moves)
    drawn = [effects_of(game, 6, 8, seed) for seed in range(150)]
    found = np.array([each.best_capture for each in drawn])
    by_truth = np.array([capture(moves, each.importance) for each in drawn])
    assert found.mean() <= truth + 3 * found.std() / np.sqrt(len(found)) + 1e-12
    assert found.mean() == pytest.approx(truth, rel=0.06)
    assert by_truth.mean() == pytest.approx(truth, rel=0.01)


def test_noise_does_not_pay():
    """Moves that no token repeats: the best order of one draw is no better than chance on others.

    The capture of an order on the very moves it was found by would be far above zero.
    """
    random = np.random.default_rng(0)
    noise = [TokenEffects(made, made) for made in random.random((150, 8, 10)) * 0.1]
    found = np.array([each.best_capture for each in noise])
    assert abs(found.mean()) < 4.5 * found.std() / np.sqrt(len(found))
    assert np.mean([capture(each.importance, each.importance) for each in noise]) > 0.02


def test_nothing_to_rank_has_no_capture():
    assert np.isnan(capture(np.ones(1), np.ones(1)))
    assert np.isnan(capture(np.ones(0), np.ones(0)))
    assert np.isnan(TokenEffects(np.ones((1, 4)), np.ones((1, 4))).best_capture)


def test_where_nothing_would_be_left_the_last_step_is_unknown():
    """A model without special tokens has no answer to an empty text: the rest still counts."""
    orders = random_orders(4, 2, 0)
    sets = removed_sets(orders)
    known = np.where(sets.all(axis=1), np.nan, bag(sets))
    found = token_effects(orders, known, np.stack([known, 1 - known], axis=1))
    for pair in range(2):
        for token in range(4):
            steps = [
                (known[row * 5 + step], known[row * 5 + step + 1])
                for row in (2 * pair, 2 * pair + 1)
                for step in [orders[row, token]]
                if step < 3
            ]
            falls = [before - after for before, after in steps]
            assert found.falls[pair, token] == pytest.approx(np.mean(falls))
            assert found.moves[pair, token] == pytest.approx(np.mean(np.abs(falls)))
    assert np.isfinite(found.importance).all() and np.isfinite(found.best_capture)


def test_a_text_of_one_token_of_which_nothing_would_be_left_has_no_effects():
    orders = random_orders(1, 2, 0)
    known = np.array([0.9, np.nan] * 4)
    found = token_effects(orders, known, np.stack([known, 1 - known], axis=1))
    assert np.isnan(found.importance).all() and np.isnan(found.pull).all()
    assert np.isnan(found.best_capture)


# What one text can tell


@pytest.mark.parametrize(
    "scores", [[9, 7, 4, 2, 1], [1, 2, 4, 7, 9], [2, 2, 1, 1, 1], [0, 0, 0, 0, 0]]
)
def test_p_is_the_share_of_all_orders_that_capture_as_much(scores):
    importance = np.array([0.2, 0.05, 0.4, 0.0, 0.1])
    reached = capture(np.array(scores, dtype=float), importance)
    every = [capture(np.array(order, dtype=float), importance) for order in permutations(scores)]
    expected = np.mean([each >= reached - 1e-12 for each in every])
    assert capture_p(np.array(scores, dtype=float), importance) == pytest.approx(expected)


def test_p_of_drawn_orders_is_near_that_of_all():
    """Two tokens matter alike: they come first in 2 of n (n − 1) orders."""
    importance = np.array([1.0, 1.0, *np.zeros(8)])
    assert capture_p(np.arange(10.0, 0, -1), importance) == pytest.approx(2 / 90, abs=0.006)
    assert capture_p(np.arange(10.0), importance) == 1
    assert capture_p(10 * importance, importance) == pytest.approx(1 / 45, abs=0.006)


def test_p_of_random_scores_is_uniform_or_larger():
    random = np.random.default_rng(0)
    importance = random.random(12) ** 3
    p = np.array([capture_p(random.random(12), importance) for _ in range(300)])
    for level in (0.05, 0.2, 0.5):
        share = np.mean(p <= level)
        assert abs(share - level) < 4 * np.sqrt(level * (1 - level) / len(p))


def test_reliability_is_the_correlation_of_two_measurements():
    """Simulated: noise of a known size on a known importance; α is what two means correlate by."""
    random = np.random.default_rng(0)
    truth = random.normal(0.3, 0.1, size=400)
    for noise in (0.05, 0.3, 1.0):
        one, other = (
            TokenEffects(made, made) for made in truth + noise * random.normal(size=(2, 8, 400))
        )
        expected = 0.01 / (0.01 + noise**2 / 8)
        assert one.reliability == pytest.approx(expected, abs=0.12)
        found = np.corrcoef(one.importance, other.importance)[0, 1]
        assert found == pytest.approx(expected, abs=0.12)
    same = np.tile(truth[:5], (8, 1))
    assert TokenEffects(same, same).reliability == pytest.approx(1)
    assert TokenEffects(np.ones((8, 5)), np.ones((8, 5))).reliability == 0
    assert np.isnan(TokenEffects(np.ones((8, 1)), np.ones((8, 1))).reliability)


def test_right_way():
    pull = np.array([0.5, -0.25, 0.25, np.nan])
    assert right_way(np.array([1.0, -9, 1, 1]), pull, signed=True) == 1
    assert right_way(np.array([1.0, 9, 0, 1]), pull, signed=True) == 0.5
    assert right_way(np.array([1.0, 1, 1, 1]), pull, signed=False) == 0.75
    assert right_way(np.array([0.0, 2, 2, 1]), pull, signed=False) == 0.5
    assert np.isnan(right_way(np.ones(2), np.zeros(2), signed=True))
