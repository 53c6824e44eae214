"""Other weights over fixed states, on arrays whose answer is known by hand."""

import math
from itertools import permutations

import pytest
import torch

from attlas.mathematics.other_weights import (
    AdversaryPlan,
    Candidates,
    erased,
    far_candidates,
    first_flips,
    permuted,
    ranks,
)


def seeded():
    return torch.Generator().manual_seed(0)


def answer_of(values):
    """A model whose logit is the mixture of these numbers, one for each token: `[text, token]`."""

    def answer(weights):
        positive = (weights * values).sum(dim=-1).sigmoid()
        return torch.stack([1 - positive, positive], dim=-1)

    return answer


WEIGHTS = torch.tensor([[0.0, 0.5, 0.3, 0.2, 0.0], [0.0, 0.9, 0.1, 0.0, 0.0]])
FREE = torch.tensor([[False, True, True, True, False], [False, True, True, False, False]])


def test_all_orders_of_the_free_weights_come_alike_often():
    found = permuted(WEIGHTS, FREE, 6000, seeded())
    assert (found[:, ~FREE] == 0).all()
    for text, size in ((0, 3), (1, 2)):
        rows = found[:, text, 1 : size + 1]
        for order in permutations(WEIGHTS[text, 1 : size + 1].tolist()):
            share = (rows == torch.tensor(order)).all(dim=1).double().mean()
            assert abs(share - 1 / math.factorial(size)) < 0.03


def test_erased_weight_goes_to_the_others_in_proportion():
    gone = torch.zeros(2, 2, 5, dtype=torch.bool)
    gone[0, :, 1] = True
    gone[1] = True
    found = erased(WEIGHTS.expand(2, -1, -1), gone)
    torch.testing.assert_close(found[0, 0], torch.tensor([0.0, 0.0, 0.6, 0.4, 0.0]))
    torch.testing.assert_close(found[0, 1], torch.tensor([0.0, 0.0, 1.0, 0.0, 0.0]))
    assert (found[1] == 0).all()  # nothing is left to mix


def test_ranks_count_from_the_highest_score_and_ties_fall_at_random():
    scores = torch.tensor([[[9.0, 0.1, 0.3, 0.2, 9.0], [9.0, 0.5, 0.5, 9.0, 9.0]]])
    found = torch.stack([ranks(scores, FREE, torch.Generator().manual_seed(n)) for n in range(400)])
    assert (found[:, 0, 0, 1:4] == torch.tensor([2, 0, 1])).all()
    assert abs((found[:, 0, 1, 1] == 0).double().mean() - 0.5) < 0.1


def test_the_first_flip_is_where_the_sum_changes_its_sign():
    # The mixture is positive through the first token; the others pull the other way.
    values = torch.tensor([[0.0, 4.0, -1.0, -1.0, 0.0], [0.0, 1.0, 1.0, 0.0, 0.0]])
    orders = torch.stack([WEIGHTS, -WEIGHTS])
    rank = ranks(orders, FREE, seeded())
    found = first_flips(WEIGHTS, FREE, rank, answer_of(values))
    # By attention, the first token goes first and the decision flips; from the other end only when
    # all are gone: with logit 0 both choices are alike, and the first one is taken.
    assert found.removed[:, 0].tolist() == [1, 3]
    # Both tokens of the second text speak for the same: only the zero mixture flips it.
    assert found.removed[:, 1].tolist() == [2, 2]
    torch.testing.assert_close(found.shares(FREE)[:, 0], torch.tensor([1 / 3, 1.0]))


def test_a_decision_that_nothing_flips_counts_as_all_removed():
    found = first_flips(
        WEIGHTS, FREE, ranks(WEIGHTS[None], FREE, seeded()), answer_of(-torch.ones(2, 5))
    )
    assert not found.flips.any()
    assert found.removed.tolist() == [[3, 2]]


def test_flips_are_the_same_in_pieces(monkeypatch):
    values = torch.randn(2, 5, generator=seeded())
    rank = ranks(torch.stack([WEIGHTS, -WEIGHTS]), FREE, seeded())
    whole = first_flips(WEIGHTS, FREE, rank, answer_of(values))
    monkeypatch.setattr("attlas.mathematics.other_weights.ENTRIES_AT_ONCE", 1)
    apart = first_flips(WEIGHTS, FREE, rank, answer_of(values))
    assert whole.removed.equal(apart.removed) and whole.flips.equal(apart.flips)


def test_the_farthest_candidate_within_the_tolerance_counts():
    found = Candidates(
        torch.eye(5)[:3, None].expand(-1, 2, -1),
        torch.tensor([[0.6, 0.6], [0.4, 0.2], [0.5, 0.1]]),
        torch.tensor([[0.3, 0.2], [0.04, 0.3], [0.01, 0.4]]),
    )
    assert found.farthest(0.05).tolist() == pytest.approx([0.5, 0.0])
    assert found.farthest(0.01).tolist() == pytest.approx([0.5, 0.0])
    assert found.farthest(0.2).tolist() == pytest.approx([0.5, 0.6])
    chosen = found.chosen(0.05, WEIGHTS)
    assert chosen[0].argmax() == 2 and chosen[1].equal(WEIGHTS[1])


def test_where_all_states_are_equal_weights_can_move_as_far_as_they_like():
    found = far_candidates(
        WEIGHTS, FREE, answer_of(torch.ones(2, 5)), AdversaryPlan(steps=300, rate=0.1), seeded()
    )
    # All mass on the lightest token is the farthest that weights can be.
    far = found.farthest(0.01)
    least = [_distance(WEIGHTS[0, 1:4], 2), _distance(WEIGHTS[1, 1:3], 1)]
    assert far.tolist() == pytest.approx(least, abs=0.01)


def test_where_the_answer_is_the_weight_candidates_stay_within_the_tolerance():
    values = torch.tensor([[0.0, 2.0, -2.0, -2.0, 0.0], [0.0, 2.0, -2.0, 0.0, 0.0]])
    found = far_candidates(
        WEIGHTS, FREE, answer_of(values), AdversaryPlan(steps=600, rate=0.05), seeded()
    )
    moved = found.chosen(0.05, WEIGHTS)
    # The first weight sets the answer; 0.05 of probability are 0.05 of it at a logit of 0, and from
    # the logit 1.6 down to logit(0.782) = 1.277 less than 0.1.
    assert abs(moved[0, 1] - 0.5) <= 0.051 and abs(moved[1, 1] - 0.9) < 0.1
    # What the other two share can all go to the lighter one.
    assert moved[0, 3] > 0.4 and found.farthest(0.05)[0] > 0.1 > found.farthest(0.05)[1]


def _distance(own, chosen):
    one = torch.nn.functional.one_hot(torch.tensor(chosen), len(own)).double()
    middle = (one + own) / 2
    terms = own * (own / middle).log()
    return float((terms.sum() + math.log(1 / middle[chosen])) / 2)
