"""Erasure: plans by hand, and models whose answers are known."""

import json
import math
import sys

import numpy as np
import pytest
from known_models import copies_attended, ignores_attention
from subjects import TEXTS, ask, subject

import attlas
from attlas.data.generated.shortcuts import generate
from attlas.errors import UsageError
from attlas.results.support.plots import check_plot
from attlas.trials import TRIALS, Scope, TrialOutcome
from attlas.trials.erasure import erasure, flip_table
from attlas.trials.rewriting.erasing import ORDERS, ErasurePlan
from attlas.trials.support.outputs import distributions

P = 1 / (1 + math.exp(-8))  # of the class of the marked word: the logits are −4 and 4
HALF = [0.5, 0.5]


def divergence(p, q):
    """Jensen and Shannon's, from the definition."""
    middle = [(a + b) / 2 for a, b in zip(p, q, strict=True)]
    parts = [a * math.log(a / m) for r in (p, q) for a, m in zip(r, middle, strict=True) if a]
    return sum(parts) / 2


def plan(scores, draws=2, erasable=None, seed=0):
    given = [np.array(each, dtype=float) for each in scores]
    marks = np.ones(len(given[0]), dtype=bool) if erasable is None else np.array(erasable)
    return ErasurePlan.of(marks, given, np.random.default_rng(seed), draws)


ATTENTION, GRADIENT = [0.1, 0.5, 0.2, 0.2], [-3.0, 1.0, 2.0, 0.0]


def test_orders_go_down_and_the_gradient_keeps_its_sign():
    made = plan([ATTENTION, GRADIENT, [0, 1, 2, 3]], erasable=[True, True, True, False])
    assert [order.tolist() for order in made.orders[:3]] == [[1, 2, 0], [2, 1, 0], [2, 1, 0]]
    assert all(sorted(order.tolist()) == [0, 1, 2] for order in made.orders[3:])
    assert len(made.orders) == 5


def test_the_other_is_any_but_the_largest_and_ties_are_drawn():
    plans = [plan([ATTENTION, GRADIENT, GRADIENT], seed=seed) for seed in range(40)]
    assert {each.other for each in plans} == {0, 2, 3}
    assert {tuple(each.orders[0].tolist()) for each in plans} == {(1, 2, 3, 0), (1, 3, 2, 0)}
    assert plan([[1.0], [1.0], [1.0]]).other is None


def test_sets_grow_to_all_in_even_steps():
    made = plan([ATTENTION, GRADIENT, GRADIENT], draws=1)
    sets = made.sets(2)
    assert sets[0].sum() == 0 and sets[3].all()
    assert sets[1].tolist() == [False, True, False, False]
    assert np.flatnonzero(sets[2]).tolist() == [made.other]
    growing = sets[4:].reshape(2, 4, 4)
    assert growing.sum(axis=2).tolist() == [[2] * 4, [4] * 4]
    assert growing[0, 1].tolist() == [False, True, True, False]
    assert made.sizes(3) == [2, 3, 4]


def test_what_was_removed_until_the_decision_turned_by_hand():
    made = plan([ATTENTION, GRADIENT, GRADIENT], draws=2)
    turned = np.zeros(4 + 4 * 5, dtype=bool)
    growing = turned[4:].reshape(4, 5)  # [size, order]
    growing[2, 0] = growing[3, 0] = True  # three weights by attention
    growing[0, 1] = True  # one by gradient, though more of them turn it back
    growing[1, 3] = True  # two of the first draw; the second turns nothing
    found = made.figures(np.arange(24.0) / 100, turned, 4)
    assert found["removed by attention"] == 3 / 4
    assert found["weight removed by attention"] == pytest.approx(0.9)
    assert found["removed by gradient"] == 1 / 4
    assert found["weight removed by gradient"] == pytest.approx(0.2)
    assert found["removed by gradient × attention"] == 1  # never
    assert found["removed by random order"] == (2 / 4 + 1) / 2
    assert found["some set turns it"] == 1 and found["all turn it"] == 0
    assert found["difference of JSD"] == pytest.approx(0.01 - 0.02)
    assert found["difference of weight"] == pytest.approx(0.5 - ATTENTION[made.other])


def test_a_table_of_flips_by_hand():
    found = flip_table(
        {
            "largest turns it": np.array([1, 1, 0, 0, 0, np.nan]),
            "random one turns it": np.array([1, 0, 1, 0, 0, np.nan]),
        }
    )
    cells = [found[name] for name in ("both", "largest_only", "random_only", "neither", "texts")]
    assert cells == [1, 1, 1, 2, 5]
    assert found["largest"]["mean"] == found["random"]["mean"] == 0.4


@pytest.mark.parametrize("kind", ["readout", "all"])
def test_the_word_that_is_copied_is_the_only_one_that_counts(kind):
    texts = ["bad bad GOOD bad", "GOOD bad", "bad GOOD bad good bad"]
    found = erasure(copies_attended().ask(texts), Scope(kind))
    lengths = np.array([4, 2, 5])
    np.testing.assert_allclose(found.figures["JSD of the largest"], divergence([P, 1 - P], HALF))
    np.testing.assert_allclose(found.figures["JSD of a random one"], 0, atol=1e-12)
    np.testing.assert_allclose(found.figures["difference of weight"], 1, atol=1e-6)
    assert found.figures["largest turns it"].tolist() == [1, 1, 1]  # nothing read is NEGATIVE
    assert found.figures["random one turns it"].tolist() == [0, 0, 0]
    for order in ("attention", "gradient × attention"):
        np.testing.assert_allclose(found.figures[f"removed by {order}"], 1 / lengths)
    drawn = found.figures["removed by random order"]
    assert (drawn >= 1 / lengths).all() and drawn.mean() > 1.5 * (1 / lengths).mean()
    assert found.details["flips"]["largest_only"] == 3
    assert "100.0%" in found.sentence


def test_a_signed_gradient_goes_for_what_speaks_for_the_answer():
    # GOOD and good both would push up, though only GOOD is looked at; those against come last.
    found = erasure(copies_attended().ask(["bad bad bad good GOOD"]))
    assert found.figures["removed by gradient"][0] in (1 / 5, 2 / 5)


def test_where_attention_is_not_used_nothing_turns():
    found = erasure(ignores_attention().ask(["good bad fine", "fine good", "bad"]))
    np.testing.assert_allclose(found.figures["JSD of all"], 0, atol=1e-12)
    assert not found.figures["some set turns it"].any()
    assert all((found.figures[f"removed by {order}"] == 1).all() for order in ORDERS)
    assert np.isnan(found.figures["difference of JSD"]).tolist() == [False, False, True]
    assert "No set of weights flipped any" in found.sentence


def test_answers_are_one_softmax_away_from_the_logits():
    question = copies_attended().ask(["GOOD bad"])[0]
    assert distributions(question)[0, 0].tolist() == pytest.approx([1 - P, P], abs=1e-7)


def test_a_text_has_the_same_figures_in_any_company():
    task = "sequence classification"
    alone = erasure([ask(task, TEXTS[task][0])])
    among = erasure(subject(task).ask([*TEXTS[task], TEXTS[task][0]]))
    for name, values in alone.figures.items():
        assert among.figures[name][0] == pytest.approx(values[0], abs=1e-6, nan_ok=True), name
    again = erasure([ask(task, TEXTS[task][0])], seed=1)
    assert again.texts == alone.texts == (0,)


@pytest.mark.parametrize("task", ["causal lm", "sequence to sequence", "question answering"])
def test_other_tasks_are_tried_too(task):
    found = TRIALS["erasure"].run([ask(task)], Scope(), seed=3, draws=1)
    assert isinstance(found, TrialOutcome)
    assert 0 < found.figures["removed by attention"][0] <= 1
    assert found.figures["JSD of all"][0] > 0
    for plot in found.plots:
        check_plot(plot)
    json.dumps(found.details, allow_nan=False)


def test_steps_bound_the_number_of_sets(monkeypatch):
    asked = []

    def changes(_, sets):
        asked.append(sets.shape)
        return np.zeros(sets.shape[:2]), np.zeros(sets.shape[:2], dtype=bool)

    monkeypatch.setattr(sys.modules["attlas.trials.erasure"], "_changes", changes)
    erasure([ask("sequence classification")], steps=3, draws=2)
    assert asked[0][0] == 4 + 3 * 5


def test_what_cannot_be_tried_is_refused():
    with pytest.raises(UsageError, match="give its number"):
        erasure([ask("sequence classification")], Scope("layer"))
    with pytest.raises(UsageError, match="is a value"):
        erasure([ask("regression")])
    with pytest.raises(UsageError, match="at least 1"):
        erasure([ask("sequence classification")], draws=0)


def test_a_model_that_was_trained_to_look_away_does_not_hang_on_what_it_looks_at():
    texts = [example.text for example in generate(6, 5, "token")]

    def turned(name, kind):
        found = erasure(attlas.load(name).ask(texts), Scope(kind), steps=1, draws=1)
        return found.figures["largest turns it"].mean()

    assert turned("shortcut_token", "readout") >= 0.25
    assert turned("shortcut_deceptive", "readout") == 0
    assert turned("shortcut_deceptive", "all") == 1
