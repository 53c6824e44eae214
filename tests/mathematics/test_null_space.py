"""The null space of values: hand-worked cases, pseudo-inverses row by row, and the rank law."""

import pytest
import torch
from subjects import random_attention
from torch.utils._python_dispatch import TorchDispatchMode

from attlas.mathematics import effective_weights as projections
from attlas.mathematics import null_space
from attlas.mathematics.effective_weights import effective_weights
from attlas.mathematics.null_space import (
    centred,
    column_basis,
    ranks,
    rounding,
)


def random_values(*shape, seed=0):
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(*shape, generator=generator, dtype=torch.float64)


def seeing_all(weights):
    return torch.ones(weights.shape[0], 1, *weights.shape[2:], dtype=torch.bool)


def seeing_back(length, window=None):
    rows, keys = torch.arange(length)[:, None], torch.arange(length)
    seen = keys <= rows
    return (seen if window is None else seen & (keys > rows - window))[None, None]


def by_hand(weights, values, visible, constant=False):
    """Row by row, by the pseudo-inverse: the definition."""
    found = torch.zeros_like(weights)
    for batch, head, query in torch.cartesian_prod(*map(torch.arange, weights.shape[:3])):
        seen = visible.expand_as(weights)[batch, head, query]
        mixed = values[batch, head, seen]
        if constant:
            mixed = torch.cat([mixed, torch.ones(len(mixed), 1, dtype=mixed.dtype)], dim=1)
        row = weights[batch, head, query, seen]
        found[batch, head, query, seen] = row @ mixed @ torch.linalg.pinv(mixed)
    return found


def test_worked_by_hand():
    # Values (1, 1, 0) in one dimension: what lies along (1, -1, 0) or (0, 0, 1) changes nothing.
    weights = torch.tensor([[[[0.6, 0.2, 0.2]]]], dtype=torch.float64)
    values = torch.tensor([[[[1.0], [1.0], [0.0]]]], dtype=torch.float64)
    seen = seeing_all(weights)
    found = effective_weights(weights, values, seen)
    torch.testing.assert_close(found[0, 0, 0], torch.tensor([0.4, 0.4, 0.0]).double())
    kept = effective_weights(weights, values, seen, keep_sums=True)
    torch.testing.assert_close(kept[0, 0, 0], torch.tensor([0.4, 0.4, 0.2]).double())


@pytest.mark.parametrize("keep_sums", [False, True])
@pytest.mark.parametrize(
    "visible", [None, seeing_back(20), seeing_back(20, window=9)], ids=["all", "causal", "window"]
)
@pytest.mark.parametrize("width", [4, 25])
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_is_the_projection_of_each_row(visible, width, keep_sums, dtype):
    weights = random_attention(2, 3, 20, 20)
    visible = seeing_all(weights) if visible is None else visible
    weights = weights * visible / (weights * visible).sum(dim=-1, keepdim=True)
    values = random_values(2, 3, 20, width, seed=1).to(dtype)
    found = effective_weights(weights, values, visible.expand(2, -1, -1, -1), keep_sums=keep_sums)
    exact = values.double()
    expected = by_hand(weights, exact, visible, constant=keep_sums)
    torch.testing.assert_close(found, expected, atol=1e-10, rtol=0)
    torch.testing.assert_close(found @ exact, weights @ exact, atol=1e-10, rtol=0)
    assert not found[~visible.expand_as(found)].any()
    again = effective_weights(found, values, visible.expand(2, -1, -1, -1), keep_sums=keep_sums)
    torch.testing.assert_close(again, found, atol=1e-10, rtol=0)
    if keep_sums:
        torch.testing.assert_close(found.sum(-1), torch.ones(2, 3, 20).double())
    if width == 25:
        assert torch.equal(found, weights)
    else:
        assert found.min() < 0 and (found - weights).abs().max() > 0.01


def test_projecting_whole_rows_would_reach_the_future():
    weights = random_attention(1, 1, 40, 40, causal=True)
    values = random_values(1, 1, 40, 8)
    whole = weights @ values @ torch.linalg.pinv(values)
    assert whole.triu(1).abs().sum() > 0.2 * whole.abs().sum()
    assert not effective_weights(weights, values, seeing_back(40)).triu(1).any()


def test_rows_in_small_pieces_are_the_same(monkeypatch):
    weights, values = random_attention(2, 2, 12, 12, causal=True), random_values(2, 2, 12, 5)
    seen = seeing_back(12).expand(2, -1, -1, -1)
    whole = effective_weights(weights, values, seen)
    monkeypatch.setitem(projections.BYTES_AT_ONCE, "cpu", 1)
    torch.testing.assert_close(effective_weights(weights, values, seen), whole)


@pytest.mark.parametrize("keys", [3, 8, 9, 20])
@pytest.mark.parametrize("width", [1, 8, 12])
def test_rank_law(keys, width):
    values = random_values(1, 2, keys, width)
    seen = torch.ones(1, 2, 1, keys, dtype=torch.bool)
    found = ranks(values, seen, rounding(values))
    assert (found == min(keys, width)).all()
    with_constant = ranks(centred(values, seen), seen, rounding(values)) + 1
    assert (keys - with_constant == max(keys - width - 1, 0)).all()


def test_rounding_is_no_rank():
    """Values of rank three, computed in float32, have more directions to float64 than they have."""
    thin = (random_values(1, 1, 30, 3) @ random_values(3, 10, seed=1)).float()
    seen = torch.ones(1, 1, 1, 30, dtype=torch.bool)
    assert int(ranks(thin, seen, rounding(thin))) == 3
    assert int(ranks(thin, seen, rounding(thin, torch.float64))) == 10
    basis = column_basis(thin.double(), rounding(thin))
    assert round(float(basis.square().sum())) == 3


@pytest.mark.parametrize("tolerance", [1e-6, 1e-14])
@pytest.mark.parametrize("shape", [(30, 8), (8, 30)])
def test_both_ways_to_a_basis_agree(shape, tolerance):
    matrices = random_values(2, *shape)
    matrices[..., -1] *= 1e-4  # a small direction, to be kept
    basis = column_basis(matrices, tolerance)
    product = basis.mT @ basis
    assert (product.diagonal(dim1=-2, dim2=-1) > 0.5).sum() == 2 * 8
    again = basis @ (basis.mT @ matrices)
    torch.testing.assert_close(again, matrices, atol=1e-12, rtol=0)
    torch.testing.assert_close(product @ product, product, atol=1e-12, rtol=0)


def test_values_of_nothing_leave_nothing():
    weights = random_attention(1, 1, 5, 5)
    found = effective_weights(weights, torch.zeros(1, 1, 5, 3), seeing_all(weights))
    assert not found.any()


def test_ranks_of_rows_that_see_few_keys_are_those_of_what_they_see():
    """Few keys among many, some of them sums of others, against the definition key by key."""
    values = random_values(2, 3, 12, 8)
    values[0, 0, 2] = values[0, 0, 0] + values[0, 0, 1]
    seen = torch.zeros(2, 1, 1, 12, dtype=torch.bool)
    seen[0, ..., :5], seen[1, ..., :10] = True, True
    found = ranks(values, seen, 1e-9)
    for batch, head in torch.cartesian_prod(torch.arange(2), torch.arange(3)):
        own = values[batch, head, seen[batch, 0, 0]]
        assert int(found[batch, head]) == int(torch.linalg.matrix_rank(own))
    assert found.tolist() == [[4, 5, 5], [8, 8, 8]]


def test_no_singular_values_are_needed_if_what_is_seen_is_independent(monkeypatch):
    monkeypatch.setattr(null_space, "singular_values", lambda _: pytest.fail("asked"))
    seen = torch.arange(12)[None, :] < torch.tensor([[3], [12]])
    found = ranks(random_values(2, 3, 12, 8), seen[:, None, None], 1e-5)
    assert found.tolist() == [[3] * 3, [8] * 3]


class Decompositions(TorchDispatchMode):
    """Counts the matrices that are decomposed, by the name of the operator."""

    def __init__(self):
        super().__init__()
        self.found = {}

    def __torch_dispatch__(self, operator, types, args=(), kwargs=None):
        name = operator.overloadpacket.__name__
        if "linalg" in name and "solve" not in name:
            self.found[name] = self.found.get(name, 0) + args[0].shape[:-2].numel()
        return operator(*args, **(kwargs or {}))


def lengths(*given, most=24):
    """Texts of a batch that are filled up: none of their rows sees what is behind the text."""
    return torch.cat([seeing_back(most) & (torch.arange(most) < each) for each in given])


def normed(weights, visible):
    return weights * visible / (weights * visible).sum(dim=-1, keepdim=True).clamp_min(1e-9)


@pytest.mark.parametrize("keep_sums", [False, True])
def test_a_map_of_a_decoder_takes_no_eigenvalues(keep_sums):
    tokens, heads, width = 40, 2, 8
    weights = random_attention(1, heads, tokens, tokens, causal=True)
    values = random_values(1, heads, tokens, width).float()
    with Decompositions() as seen:
        effective_weights(weights, values, seeing_back(tokens), keep_sums=keep_sums)
    assert seen.found.keys() == {"linalg_cholesky_ex"}
    # One for each row above the width, and less than one more for proofs.
    assert seen.found["linalg_cholesky_ex"] < 2 * heads * tokens


@pytest.mark.parametrize("keep_sums", [False, True])
@pytest.mark.parametrize("visible", [seeing_back(24), seeing_back(24, window=7), lengths(24, 9)])
def test_keys_with_the_same_values_are_found(visible, keep_sums):
    """A decoder's first values of a word that comes twice are the same, so few keys depend."""
    batch = len(visible)
    values = random_values(batch, 2, 24, 6)
    values[:, 0, 3] = values[:, 0, 1]
    values[-1, :, 6] = values[-1, :, 2] + values[-1, :, 5]
    weights = normed(random_attention(batch, 2, 24, 24), visible)
    found = effective_weights(weights, values, visible, keep_sums=keep_sums)
    expected = by_hand(weights, values, visible, constant=keep_sums)
    torch.testing.assert_close(found, expected, atol=1e-10, rtol=0)


def test_texts_that_see_alike_are_projected_together():
    visible = lengths(24, 12, 24, 12)
    weights, values = normed(random_attention(4, 1, 24, 24), visible), random_values(4, 1, 24, 5)
    found = effective_weights(weights, values, visible)
    for row in range(4):
        alone = effective_weights(weights[[row]], values[[row]], visible[[row]])
        torch.testing.assert_close(found[[row]], alone, atol=1e-12, rtol=0)
