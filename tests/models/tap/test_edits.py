"""Edits as functions of the weights, each held against its definition worked out by hand."""

import pytest
import torch

from attlas.errors import UnknownNameError, UsageError
from attlas.models.asking.open_model import check_kinds
from attlas.models.load import load
from attlas.models.tap import edits
from attlas.models.tap.edits import whole_numbers
from attlas.results import Site

SITE = Site("encoder", 1, 2)
SITES = [Site("encoder", layer, 2) for layer in range(3)]


def weights(size=5, causal=False, seed=0):
    scores = torch.randn(2, 3, size, size, generator=torch.Generator().manual_seed(seed))
    seen = torch.ones(size, size, dtype=torch.bool)
    seen = seen.tril() if causal else seen
    visible = seen.expand(2, 1, size, size)
    return scores.masked_fill(~visible, float("-inf")).softmax(-1), visible


def apply(edit, causal=False):
    attention, visible = weights(causal=causal)
    return attention, visible, edit.rewrite(SITE, attention, visible)


def test_scale_multiplies():
    attention, _, edited = apply(edits.scale(0.25))
    assert torch.equal(edited, attention * 0.25)


def test_zero_takes_the_weight_and_shares_it_out():
    attention, visible = torch.tensor([[[[0.5, 0.3, 0.2]]]]), torch.ones(1, 1, 1, 3).bool()
    edited = edits.zero(0).rewrite(SITE, attention, visible)
    torch.testing.assert_close(edited, torch.tensor([[[[0.0, 0.6, 0.4]]]]))
    nothing_left = edits.zero([0, 1, 2]).rewrite(SITE, attention, visible)
    assert not nothing_left.any()


def test_zero_keeps_the_sum_of_a_row_that_has_a_sink():
    attention, visible = torch.tensor([[[[0.2, 0.3, 0.1]]]]), torch.ones(1, 1, 1, 3).bool()
    edited = edits.zero(1).rewrite(SITE, attention, visible)
    torch.testing.assert_close(edited, torch.tensor([[[[0.4, 0.0, 0.2]]]]))


@pytest.mark.parametrize("causal", [False, True])
def test_uniform_is_even_over_what_is_visible(causal):
    _, visible, edited = apply(edits.uniform(), causal)
    counts = visible.sum(-1, keepdim=True)
    torch.testing.assert_close(edited, (visible / counts).expand_as(edited).float())


@pytest.mark.parametrize("causal", [False, True])
def test_permute_moves_weights_only_among_what_is_visible(causal):
    attention, visible, edited = apply(edits.permute(seed=3), causal)
    assert not edited[~visible.expand_as(edited)].any()
    torch.testing.assert_close(edited.sort(-1).values, attention.sort(-1).values)
    assert not torch.equal(edited, attention)
    assert torch.equal(edited, apply(edits.permute(seed=3), causal)[2])
    assert not torch.equal(edited, apply(edits.permute(seed=4), causal)[2])


def test_every_order_is_drawn_about_equally_often():
    attention = torch.tensor([1.0, 2.0, 3.0]).expand(1, 1, 6000, 3).contiguous()
    edited = edits.permute(0).rewrite(SITE, attention, torch.ones(1, 1, 6000, 3).bool())
    _, counts = edited[0, 0].unique(dim=0, return_counts=True)
    assert len(counts) == 6
    assert (counts - 1000).abs().max() < 150  # five standard deviations


def test_replace_broadcasts_and_refuses_what_does_not_fit():
    attention, _, edited = apply(edits.replace(torch.full((5, 5), 0.2)))
    assert torch.equal(edited, torch.full_like(attention, 0.2))
    with pytest.raises(UsageError, match=r"\(4, 4\) cannot replace \(2, 3, 5, 5\)"):
        apply(edits.replace(torch.zeros(4, 4)))


def test_apply_takes_any_function():
    attention, _, edited = apply(edits.apply(lambda each: each.flip(-1)))
    assert torch.equal(edited, attention.flip(-1))


def test_an_edit_acts_on_the_heads_and_rows_it_names():
    attention, _, edited = apply(edits.scale(0).at(heads=1, queries=[0, -1]))
    expected = attention.clone()
    expected[:, 1, [0, 4]] = 0
    assert torch.equal(edited, expected)


def test_an_edit_acts_at_the_sites_it_names():
    edit = edits.uniform().at(kind="encoder", layer=1)
    assert [edit.touches(site) for site in SITES] == [False, True, False]
    assert not edit.touches(Site("decoder", 1, 2))
    assert all(edits.uniform().touches(site) for site in SITES)


def test_layers_are_counted_from_the_top_if_negative():
    assert edits.uniform().at(layer=-1).check(SITES).layer == 2


def test_what_is_not_there_is_named():
    with pytest.raises(UsageError, match="unknown layer 3: this model has layers 0 to 2"):
        edits.uniform().at(layer=3).check(SITES)
    with pytest.raises(UnknownNameError, match="did you mean 'decoder'"):
        edits.uniform().at(kind="decodr")
    with pytest.raises(UnknownNameError, match=r"'cross'.*allowed: encoder"):
        edits.uniform().at(kind="cross").check(SITES)
    with pytest.raises(UsageError, match=r"unknown head 3 at encoder\.1: it has 0 to 2"):
        apply(edits.scale(0).at(heads=3))


@pytest.mark.parametrize(
    ("name", "given", "message"),
    [
        ("layer", "x", "layer is a whole number, not 'x'"),
        ("layer", 1.5, "layer is a whole number, not 1.5"),
        ("heads", "x", "heads are whole numbers, not 'x'"),
        ("heads", [0, "x"], "heads are whole numbers, not [0, 'x']"),
        ("queries", True, "queries are whole numbers, not True"),
    ],
)
def test_a_place_that_is_no_number_is_refused_in_one_line(name, given, message):
    with pytest.raises(UsageError) as refused:
        whole_numbers(name, given)
    assert str(refused.value) == message


def test_a_place_is_one_number_or_several():
    narrowed = edits.uniform().at(layer=1, heads=2, queries=range(2))
    assert (narrowed.layer, narrowed.heads, narrowed.queries) == (1, (2,), (0, 1))


def test_a_tap_refuses_what_it_does_not_know_in_one_line():
    with pytest.raises(UsageError, match="unknown argument of tap 'layer': allowed: edits, grad"):
        load("recall").tap(layer="x")
    with pytest.raises(UsageError, match=r"^take these, not 'x'$"):
        check_kinds("take these", ["x"], edits.Edit)


def test_a_row_that_sees_nothing_is_no_division_by_zero():
    visible = torch.tensor([[True, True], [False, False]])[None, None]
    found = edits.uniform().rewrite(Site("encoder", 0, 1), torch.full((1, 1, 2, 2), 0.5), visible)
    assert found[0, 0].tolist() == [[0.5, 0.5], [0.0, 0.0]]


def test_keys_narrow_an_edit_to_columns():
    attention, _, edited = apply(edits.scale(0.25).at(keys=[1, 3]))
    expected = attention.clone()
    expected[..., [1, 3]] *= 0.25
    assert torch.equal(edited, expected)


def test_uniform_on_keys_spreads_their_own_weight():
    attention, visible = torch.tensor([[[[0.5, 0.3, 0.2]]]]), torch.ones(1, 1, 1, 3).bool()
    edited = edits.uniform().at(keys=[0, 2]).rewrite(SITE, attention, visible)
    torch.testing.assert_close(edited, torch.tensor([[[[0.35, 0.3, 0.35]]]]))


@pytest.mark.parametrize("causal", [False, True])
def test_permute_on_keys_shuffles_these_alone(causal):
    attention, visible, edited = apply(edits.permute(seed=3).at(keys=[0, 2, 4]), causal)
    assert torch.equal(edited[..., [1, 3]], attention[..., [1, 3]])
    assert not edited[~visible.expand_as(edited)].any()
    torch.testing.assert_close(edited.sort(-1).values, attention.sort(-1).values)
    assert not torch.equal(edited, attention)


def test_put_changes_what_is_chosen_and_nothing_else():
    attention, _, edited = apply(
        edits.put([[[7.0, 8.0]], [[9.0, 6.0]]], heads=[2, 0], queries=[1], keys=[3, 0])
    )
    expected = attention.clone()
    expected[:, 2, 1, 3], expected[:, 2, 1, 0] = 7, 8
    expected[:, 0, 1, 3], expected[:, 0, 1, 0] = 9, 6
    assert torch.equal(edited, expected)


def test_put_of_one_row_goes_everywhere():
    row = [0.1, 0.2, 0.3, 0.2, 0.2]
    _, _, edited = apply(edits.put(row))
    torch.testing.assert_close(edited, torch.tensor(row).expand(2, 3, 5, 5))


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (lambda: edits.put([[1.0], [2.0, 3.0]]), "equal lengths"),
        (lambda: edits.put("x"), "numbers"),
        (lambda: apply(edits.put([1.0, 2.0])), "cannot be put"),
        (lambda: apply(edits.put([1.0], heads=[9])), "unknown head 9"),
        (lambda: apply(edits.scale(0).at(keys=9)), "unknown key 9"),
    ],
)
def test_put_and_keys_refuse_what_is_not_there(given, words):
    with pytest.raises(UsageError, match=words):
        given()
