"""Ceilings against every order there is, on set functions that need no model."""

from itertools import permutations

import numpy as np
import pytest
from bag_answers import of_two_classes
from subjects import TEXTS, subject

from attlas.errors import UnknownNameError, UsageError
from attlas.models.encoding.request import Request
from attlas.removing.ceilings import AIMS
from attlas.removing.ceilings import best_orders as all_best_orders
from attlas.removing.erasures import Erasures


class Given(Erasures):
    """Texts whose probabilities are given for every set of tokens that is removed."""

    def __init__(self, tables):
        self.tables = tables
        self.asked = []

    def content(self, text):
        return list(range(int(np.log2(len(self.tables[text])))))

    def ask(self, wanted):
        self.asked.append(wanted)

    def of(self, text, ways):
        numbers = ways @ (1 << np.arange(ways.shape[1]))
        return of_two_classes(self.tables[text][numbers], np.ones(len(ways), dtype=bool))

    def whole(self, text):
        return self.of(text, np.zeros((1, len(self.content(text))), dtype=bool))


def best_orders(erasures, texts, aim, *options, **more):
    return all_best_orders(erasures, texts, [aim], *options, **more)[aim]


def every(count):
    return list(range(1, count))


def additive(count, seed):
    """The probability falls by a share for each token, whatever else is removed."""
    shares = np.random.default_rng(seed).random(count) / count
    sets = (np.arange(2**count)[:, None] >> np.arange(count)) & 1
    return 0.99 - 0.98 * sets @ shares


def interacting(count, seed):
    """Single effects, pairs and triples that count together, through a logistic function."""
    draw = np.random.default_rng(seed)
    sets = (np.arange(2**count)[:, None] >> np.arange(count)) & 1
    single, pairs = draw.normal(size=count), draw.normal(size=(count, count))
    triples = draw.normal(size=(count, count, count)) / count
    logit = sets @ single + np.einsum("si,sj,ij->s", sets, sets, pairs)
    logit = logit + np.einsum("si,sj,sk,ijk->s", sets, sets, sets, triples)
    return 1 / (1 + np.exp(logit - 1))


def figure(table, order, sizes, aim):
    """The mean fall of the probability over the sizes, from the definition."""
    falls = []
    for size in sizes:
        first = sum(1 << int(token) for token in order[:size])
        removed = first if aim == "comprehensiveness" else len(table) - 1 - first
        falls.append(table[0] - table[removed])
    return float(np.mean(falls))


def optimum(table, sizes, aim):
    """The best figure of all orders."""
    count = int(np.log2(len(table)))
    figures = [figure(table, order, sizes, aim) for order in permutations(range(count))]
    return max(figures) if aim == "comprehensiveness" else min(figures)


@pytest.mark.parametrize("aim", AIMS)
@pytest.mark.parametrize("width", [1, 3])
def test_additive_functions_give_the_exact_optimum(aim, width):
    tables = {seed: additive(5, seed) for seed in range(10)}
    found = best_orders(Given(tables), list(tables), aim, every, width)
    for text, table in tables.items():
        assert found[text].value == pytest.approx(optimum(table, every(5), aim), abs=1e-9)


@pytest.mark.parametrize("aim", AIMS)
def test_a_beam_that_drops_nothing_gives_the_optimum_of_any_function(aim):
    tables = {seed: interacting(5, seed) for seed in range(10)}
    found = best_orders(Given(tables), list(tables), aim, every, width=10)
    for text, table in tables.items():
        assert found[text].value == pytest.approx(optimum(table, every(5), aim), abs=1e-9)


@pytest.mark.parametrize("aim", AIMS)
def test_the_value_is_that_of_the_order(aim):
    tables = {0: interacting(5, 0), 1: interacting(7, 1), 2: interacting(3, 2)}
    for sizes in (every, lambda count: [1, count - 1], lambda count: [2]):
        for text, best in best_orders(Given(tables), list(tables), aim, sizes).items():
            count = int(np.log2(len(tables[text])))
            assert sorted(best.order.tolist()) == list(range(count))
            expected = figure(tables[text], best.order, sizes(count), aim)
            assert best.value == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize("aim", AIMS)
def test_never_worse_than_greedy(aim):
    tables = {seed: interacting(6, seed) for seed in range(60)}
    sign = 1 if aim == "comprehensiveness" else -1
    greedy = best_orders(Given(tables), list(tables), aim, every, 1)
    better = 0
    for width in (2, 4):
        found = best_orders(Given(tables), list(tables), aim, every, width)
        gains = [sign * (found[text].value - greedy[text].value) for text in tables]
        assert min(gains) >= 0
        better += sum(gain > 1e-6 for gain in gains)
    assert better > 0


def test_greedy_takes_the_best_next_token():
    table, chosen, order = interacting(6, 3), 0, []
    for _ in range(5):
        rest = [token for token in range(6) if token not in order]
        token = min(rest, key=lambda each: table[chosen | 1 << each])
        chosen, order = chosen | 1 << token, [*order, token]
    (best,) = best_orders(Given({0: table}), [0], "comprehensiveness", every, 1).values()
    assert best.order[:5].tolist() == order


@pytest.mark.parametrize("aim", AIMS)
def test_blocks_are_the_tokens_that_do_most_by_themselves(aim):
    tables = {seed: additive(8, seed) for seed in range(5)}
    found = best_orders(Given(tables), list(tables), aim, lambda _: [2, 5], 2)
    for text, table in tables.items():
        assert found[text].value == pytest.approx(
            figure(table, np.argsort(table[1 << np.arange(8)]), [2, 5], aim), abs=1e-9
        )


def test_all_texts_and_aims_are_asked_together():
    tables = {seed: interacting(5 + seed % 2, seed) for seed in range(6)}
    given = Given(tables)
    found = all_best_orders(given, list(tables), AIMS, every, 2)
    asked = [each for each in given.asked if each]
    assert len(asked) == 5  # of each size once, of which the longest texts have five
    assert len(asked[0]) == 6
    for aim in AIMS:
        alone = best_orders(Given(tables), list(tables), aim, every, 2)
        for text, best in found[aim].items():
            assert best.order.tolist() == alone[text].order.tolist()


def test_a_text_without_sizes_has_no_figure():
    (best,) = best_orders(Given({3: additive(1, 0)}), [3], "sufficiency", every).values()
    assert best.order.tolist() == [0]
    assert np.isnan(best.value)
    assert best_orders(Given({}), [], "sufficiency", every) == {}


def test_wrong_words():
    with pytest.raises(UnknownNameError, match="did you mean 'sufficiency'"):
        best_orders(Given({}), [], "sufficient", every)
    with pytest.raises(UsageError, match="at least 1, not 0"):
        best_orders(Given({}), [], "sufficiency", every, 0)


@pytest.mark.parametrize("aim", AIMS)
def test_a_model(aim):
    task = "sequence classification"
    erasures = Erasures(subject(task).ask(TEXTS[task][1:2], Request()), "delete")
    count = len(erasures.content(0))
    sets = ((np.arange(2**count)[:, None] >> np.arange(count)) & 1).astype(bool)
    table = erasures.of(0, sets).probability
    (best,) = best_orders(erasures, [0], aim, every, width=10).values()
    assert best.value == pytest.approx(optimum(table, every(count), aim), abs=1e-6)
