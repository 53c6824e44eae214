"""The study of Serrano and Smith: erasing weights, on arrays whose answer is known by hand."""

import math

import numpy as np
import pytest
import torch
from studies.recurrent_models import TEXTS, trained

import attlas
from attlas.errors import UnknownNameError, UsageError
from attlas.studies.recurrent import erasing_figures as figures
from attlas.studies.recurrent.erasing_figures import claims_of
from attlas.studies.recurrent.readings import FixedReading, readings
from attlas.studies.serrano_smith import tables_of

WEIGHTS = torch.tensor([[0.6, 0.4, 0.0], [0.5, 0.3, 0.2]], dtype=torch.float64)
VALUES = torch.tensor([[2.0, -1.0, 9.0], [-4.0, 3.0, 3.0]], dtype=torch.float64)


def reading(weights=WEIGHTS, values=VALUES):
    def answer(copies):
        positive = (copies * values).sum(dim=-1).sigmoid()
        return torch.stack([1 - positive, positive], dim=-1)

    batch = trained().test.batch([0, 1])
    return FixedReading(batch, weights, weights > 0, answer(weights[None])[0], answer)


def jensen_shannon(a, b):
    def towards(p, m):
        return sum(x * math.log(x / y) for x, y in zip(p, m, strict=True))

    p, q = (1 - a, a), (1 - b, b)
    middle = [(x + y) / 2 for x, y in zip(p, q, strict=True)]
    return (towards(p, middle) + towards(q, middle)) / 2


def sigmoid(logit):
    return 1 / (1 + math.exp(-logit))


def test_the_largest_weight_is_compared_with_the_other_one():
    found = figures.erase_reading(reading(), 5, torch.Generator().manual_seed(0))
    # The first text mixes to 0.8; without its largest weight to −1, without the other one to 2.
    own = sigmoid(0.8)
    gap = jensen_shannon(own, sigmoid(-1)) - jensen_shannon(own, sigmoid(2))
    assert float(found[figures.DIVERGENCE_GAP][0]) == pytest.approx(gap)
    assert float(found[figures.WEIGHT_GAP][0]) == pytest.approx(0.2)
    assert found[figures.LARGEST_FLIPS].tolist() == [1.0, 1.0]
    assert found[figures.RANDOM_FLIPS].tolist() == [0.0, 0.0]


def test_orders_are_by_attention_signed_gradient_and_product():
    found = figures.erase_reading(reading(), 200, torch.Generator().manual_seed(0))
    # Text 1 is positive through its first weight, which all three orders name.
    # Text 2 is negative (−0.5) through its first one; the slope of that class is −VALUES.
    for order in figures.ORDERS[:3]:
        assert found[order].tolist() == pytest.approx([1 / 2, 1 / 3])
    # From the other end: text 1 flips with all gone (a tie goes to the first class), and text 2,
    # whose class a tie leaves as it is, never; that counts as all.
    assert found[figures.LEAST_FIRST].tolist() == [1.0, 1.0]
    # Of two weights, the right one is first half of the time: (1/2 + 1)/2.
    assert float(found[figures.ORDERS[3]][0]) == pytest.approx(0.75, abs=0.1)
    assert found[figures.FLIPPABLE].tolist() == [1.0, 1.0]


def test_the_orders_differ_where_weight_and_value_do():
    weights = torch.tensor([[0.01, 0.47, 0.52], [0.01, 0.68, 0.31]], dtype=torch.float64)
    values = torch.tensor([[6.0, 2.0, -1.7], [6.0, 2.0, -4.0]], dtype=torch.float64)
    found = figures.erase_reading(reading(weights, values), 1, torch.Generator().manual_seed(0))
    # Both texts are positive through the second token, whose product is the largest. The first has
    # the largest slope and hardly any weight; the third, which pulls the other way, has the largest
    # weight in the first text, and in the second a slope that would come before by its size alone.
    assert found[figures.ORDERS[0]].tolist() == pytest.approx([1.0, 1 / 3])
    assert found[figures.ORDERS[1]].tolist() == pytest.approx([2 / 3, 2 / 3])
    assert found[figures.ORDERS[2]].tolist() == pytest.approx([1 / 3, 1 / 3])


def test_the_gradient_is_that_of_the_predicted_class_on_the_weights():
    slope = figures.weight_gradient(reading())
    for row, sign in ((0, 1), (1, -1)):
        sure = sigmoid(float((WEIGHTS[row] * VALUES[row]).sum()))
        expected = sign * sure * (1 - sure) * VALUES[row]
        torch.testing.assert_close(slope[row], expected)


@pytest.mark.parametrize("hierarchical", [False, True])
def test_texts_with_a_single_weight_are_left_out(hierarchical):
    found = trained("bigru", hierarchical=hierarchical)
    made = figures.erasing_figures(found, 2, 0)
    sizes = [
        int(each.free.sum(dim=-1)[row])
        for each in readings(found.model, found.test)
        for row in range(len(each.weights))
    ]
    # One of the texts has two sentences; words there are several of in every text.
    assert len(made["texts"][figures.SIZE]) == (1 if hierarchical else len(TEXTS))
    assert sorted(made["texts"][figures.SIZE]) == sorted(size for size in sizes if size > 1)


def part(**columns):
    return {"accuracy": 0.5, "texts": columns}


def test_the_table_of_flips_has_the_share_of_each_cell():
    found = figures.flip_shares(
        part(**{figures.LARGEST_FLIPS: [1, 1, 0, 0, 0], figures.RANDOM_FLIPS: [1, 0, 1, 0, 0]})
    )
    assert found == {"both": 0.2, "largest only": 0.2, "random only": 0.2, "neither": 0.4}


def test_shares_are_of_texts_that_some_order_flips():
    found = part(**{"attention": [0.2, 1.0, 0.9], figures.FLIPPABLE: [1.0, 0.0, 1.0]})
    assert figures.removed_shares(found, "attention").tolist() == [0.2, 0.9]
    assert figures.median_removed(found, "attention") == pytest.approx(0.55)
    assert figures.mean_removed(found, "attention") == pytest.approx(0.55)
    assert np.isnan(
        figures.median_removed(part(attention=[], **{figures.FLIPPABLE: []}), "attention")
    )


def model(attention, gradient, product, random, largest):
    shares = dict(zip(figures.ORDERS, (attention, gradient, product, random), strict=True))
    flips = {figures.LARGEST_FLIPS: [largest, 0], figures.RANDOM_FLIPS: [0, 0]}
    gaps = {figures.DIVERGENCE_GAP: [0.1, 0.0], figures.FLIPPABLE: [1, 1]}
    alike = {name: [each, each] for name, each in shares.items()}
    return part(**alike, **{figures.LEAST_FIRST: [1, 1]}, **flips, **gaps)


def test_claims_hold_on_models_as_published_and_fail_on_others():
    plain = [model(0.4, 0.2, 0.2, 0.6, 0)] * 3
    good = {
        ("x", "flat", "bigru"): [model(0.9, 0.4, 0.4, 0.95, 1)] * 3,
        ("x", "flat", "none"): plain,
    }
    assert {claim.verdict for claim in claims_of(good)} == {"reproduced"}
    bad = {("x", "flat", "bigru"): [model(0.3, 0.5, 0.5, 0.2, 1)] * 3, ("x", "flat", "none"): plain}
    verdicts = [claim.verdict for claim in claims_of(bad)]
    assert verdicts.count("not reproduced") == 5
    rows = {row.name: row.ours.value for table in tables_of(good) for row in table.rows}
    assert rows["x, flat, bigru: largest only"] == 50.0
    assert rows["x, flat, bigru: gradient"] == pytest.approx(0.4)


@pytest.mark.parametrize(("classes", "known"), [(2, False), (4, True)])
def test_models_of_two_classes_are_not_compared_with_the_published_table(classes, known):
    made = [{**model(0.9, 0.4, 0.4, 0.95, 1), "classes": classes}] * 3
    flips = next(tables_of({("x", "hierarchical", "bigru"): made}))
    assert [row.published is not None for row in flips.rows] == [known] * 4


def test_wrong_words_are_named():
    with pytest.raises(UnknownNameError, match="unknown form 'deep'"):
        attlas.study("serrano_smith", quick=True, form=("deep",))
    with pytest.raises(UsageError, match="draws: a whole number, 1 or more"):
        attlas.study("serrano_smith", quick=True, draws=0)
