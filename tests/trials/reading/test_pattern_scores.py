"""Patterns of attention, on weights written by hand."""

import pytest
import torch

from attlas.trials.reading.pattern_scores import (
    LOOKS,
    attention_to,
    breadth,
    pattern_keys,
    uniform_attention,
)

# [CLS] a b a b [SEP]
IDS = torch.tensor([[1, 7, 8, 7, 8, 2]])
SPECIAL = torch.tensor([[True, False, False, False, False, True]])
ALL = torch.ones(1, 1, 6, 6, dtype=torch.bool)
CAUSAL = ALL.tril()
KEYS = {  # the keys that each row is to look at, by hand
    "previous": [[], [0], [1], [2], [3], []],
    "next": [[], [2], [3], [4], [5], []],
    "same": [[], [1], [2], [3], [4], []],
    "first": [[], [0], [0], [0], [0], [0]],
    "separator": [[5], [0, 5], [0, 5], [0, 5], [0, 5], [0]],
    "induction": [[], [], [], [2], [3], []],
}


@pytest.mark.parametrize("pattern", LOOKS)
def test_where_a_pattern_looks(pattern):
    found = pattern_keys(pattern, IDS, SPECIAL)[0]
    assert [row.nonzero().flatten().tolist() for row in found] == KEYS[pattern]


def test_what_came_after_every_earlier_one_is_wanted():
    ids = torch.tensor([[5, 6, 5, 7, 5]])
    found = pattern_keys("induction", ids, torch.zeros(1, 5, dtype=torch.bool))[0]
    assert [row.nonzero().flatten().tolist() for row in found] == [[], [], [1], [], [1, 3]]


def test_a_token_twice_in_a_row_is_not_after_itself():
    ids = torch.tensor([[5, 5]])
    assert not pattern_keys("induction", ids, torch.zeros(1, 2, dtype=torch.bool)).any()


def test_the_mean_is_over_rows_that_see_a_wanted_key():
    weights = torch.zeros(1, 2, 6, 6)
    weights[0, 0] = torch.eye(6).roll(1, dims=1)  # the first head looks at the next token
    weights[0, 1, :, 0] = 1  # and the second at the first
    rows = ~SPECIAL
    following = pattern_keys("next", IDS, SPECIAL)
    assert attention_to(weights, following, ALL, rows).tolist() == [[1, 0]]
    assert attention_to(weights, following, CAUSAL, rows).isnan().all()
    before = pattern_keys("previous", IDS, SPECIAL)
    assert attention_to(weights, before, ALL, rows).tolist() == [[0, 0.25]]  # of the first word


def test_chance_is_one_over_what_a_row_sees():
    before = pattern_keys("previous", IDS, SPECIAL)
    found = attention_to(uniform_attention(CAUSAL), before, CAUSAL, ~SPECIAL)
    assert found.item() == pytest.approx((1 / 2 + 1 / 3 + 1 / 4 + 1 / 5) / 4)


def test_breadth_is_none_for_one_key_and_one_for_all():
    even = uniform_attention(CAUSAL)
    one = torch.eye(6)[None, None]
    rows = torch.ones(1, 6, dtype=torch.bool)
    assert breadth(even, CAUSAL, rows).item() == pytest.approx(1, abs=1e-6)
    assert breadth(one, CAUSAL, rows).item() == pytest.approx(0, abs=1e-6)
    two = torch.zeros(1, 1, 6, 6)
    two[..., :2] = 0.5  # two of six
    assert breadth(two, ALL, rows).item() == pytest.approx(1 / 5, abs=1e-6)


def test_a_row_that_sees_one_key_has_no_breadth():
    first = torch.tensor([[True] + [False] * 5])
    assert breadth(uniform_attention(CAUSAL), CAUSAL, first).isnan().all()
