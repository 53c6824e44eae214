"""Erasing weights: by hand, against transformers' own attention, and against knock-out."""

import pytest
import torch
from plain_attention import changed, without
from subjects import TEXTS, arguments, ask, plain

from attlas.models.facts.evaluation_mode import evaluation_mode
from attlas.removing import removal
from attlas.trials.rewriting.erasing import Erasing, erase
from attlas.trials.support.outputs import distributions
from attlas.trials.support.scope import Scope

TASK = "sequence classification"
TEXT = TEXTS[TASK][0]
LENGTH, CONTENT = 11, list(range(1, 10))  # its tokens, and those between [CLS] and [SEP]


def test_what_is_erased_goes_to_the_others_that_may_change_in_proportion():
    weights = torch.tensor([[[[0.1, 0.2, 0.3, 0.4], [0.25, 0.25, 0.25, 0.25]]]])
    entries = torch.tensor([[[[False, True, True, True], [False] * 4]]])
    gone = torch.tensor([[[0, 0, 0, 1]], [[0, 1, 1, 1]], [[0, 0, 0, 0]], [[1, 0, 0, 0]]]).bool()
    found = erase(weights, entries, gone[:, :, None, None])[:, 0, 0]
    rows = [[0.1, 0.36, 0.54, 0], [0.1, 0, 0, 0], [0.1, 0.2, 0.3, 0.4], [0.1, 0.2, 0.3, 0.4]]
    torch.testing.assert_close(found[:, 0], torch.tensor(rows))
    assert (found[:, 1] == 0.25).all()  # a row without a path to the readout


def test_what_is_left_may_be_as_small_as_a_number_can_be():
    weights = torch.tensor([[[[1.0, 1e-41, 3e-41]]]])
    entries = torch.ones(1, 1, 1, 3, dtype=torch.bool)
    found = erase(weights, entries, torch.tensor([True, False, False])[None, None, None, None])
    torch.testing.assert_close(found.flatten(), torch.tensor([0, 0.25, 0.75]), atol=1e-3, rtol=0)


def sets(*chosen):
    gone = torch.zeros(len(chosen), 1, LENGTH, dtype=torch.bool)
    for number, keys in enumerate(chosen):
        gone[number, 0, list(keys)] = True
    return gone


def answers(scope, gone):
    return torch.cat(list(Erasing(ask(TASK, TEXT), scope).answers(gone)))[:, 0, 0]


def by_hand(change):
    with torch.no_grad(), changed(change):
        return plain(TASK)(**arguments(TASK, TEXT)).logits[0].double().softmax(-1)


@pytest.mark.parametrize(
    ("gone", "specials", "free"),
    [({2}, False, CONTENT), (set(CONTENT), False, CONTENT), ({1, 4}, True, range(LENGTH))],
)
def test_the_readout_is_the_row_of_the_first_token_in_the_last_layer(gone, specials, free):
    last = plain(TASK).config.num_hidden_layers - 1

    def change(layer, weights):
        return without(weights, 0, list(free), gone) if layer == last else weights

    (found,) = answers(Scope(specials=specials), sets(gone))
    torch.testing.assert_close(found, by_hand(change), atol=1e-6, rtol=1e-5)
    assert (found - by_hand(lambda _, weights: weights)).abs().max() > 1e-4


def test_all_layers_are_erased_on_the_stream_that_was_changed():
    last = plain(TASK).config.num_hidden_layers - 1

    def change(layer, weights):
        for row in [0] if layer == last else range(LENGTH):
            weights = without(weights, row, CONTENT, {2, 3})
        return weights

    (found,) = answers(Scope("all"), sets({2, 3}))
    torch.testing.assert_close(found, by_hand(change), atol=1e-6, rtol=1e-5)


@pytest.mark.parametrize("frozen", [False, True])
def test_the_layers_above_attend_anew_or_keep_what_they_had(frozen):
    kept = []
    by_hand(lambda _, weights: kept.append(weights) or weights)

    def change(layer, weights):
        if layer:
            return kept[layer] if frozen else weights
        for row in range(LENGTH):
            weights = without(weights, row, CONTENT, {2})
        return weights

    (found,) = answers(Scope("layer", layer=0, frozen=frozen), sets({2}))
    torch.testing.assert_close(found, by_hand(change), atol=1e-6, rtol=1e-5)


def test_tokens_erased_everywhere_are_knocked_out():
    question = ask(TASK, TEXT)
    hidden = torch.zeros(1, LENGTH, dtype=torch.bool)
    hidden[0, [3, 5]] = True
    with (
        evaluation_mode(question.subject.model),
        removal.without(question, question.inputs, hidden, "knock_out") as inputs,
    ):
        expected = distributions(question.about(inputs))[0, 0]
    (found,) = answers(Scope("token", specials=True), sets({3, 5}))
    torch.testing.assert_close(found, expected, atol=1e-6, rtol=1e-5)


@pytest.mark.parametrize("kind", ["readout", "all"])
def test_weights_and_gradients_of_tokens_are_autograds(kind):
    leaves = []

    def watch(_, weights):
        leaves.append(weights.detach().requires_grad_() if not leaves else weights)
        leaves[-1].retain_grad()
        return leaves[-1]

    with changed(watch):
        logits = plain(TASK)(**arguments(TASK, TEXT)).logits[0]
    (logits - logits.logsumexp(-1)).max().exp().backward()
    used = leaves if kind == "all" else leaves[-1:]
    weight, gradient, product = torch.zeros(3, LENGTH)
    for leaf in used:
        rows = [0] if leaf is leaves[-1] else range(LENGTH)
        own, slope = leaf.detach()[0, :, rows], leaf.grad[0, :, rows]
        weight += own.mean((0, 1)) / len(used)
        gradient += slope.sum((0, 1))
        product += (own * slope).sum((0, 1))
    found = Erasing(ask(TASK, TEXT), Scope(kind)).weigh()
    assert found.erasable[0].nonzero()[:, 0].tolist() == CONTENT
    for got, expected in zip(
        (found.weight, found.gradient, found.product), (weight, gradient, product), strict=True
    ):
        torch.testing.assert_close(
            got[0, CONTENT], expected[CONTENT].double(), atol=1e-6, rtol=1e-3, check_dtype=True
        )
        assert (got[0, [0, -1]] == 0).all()


def test_variants_in_parts_are_the_same(monkeypatch):
    gone = sets(*[{key} for key in range(1, 6)], {1, 2})
    whole = answers(Scope(), gone)
    monkeypatch.setattr("attlas.trials.rewriting.erasing.ENTRIES_AT_ONCE", 1)
    torch.testing.assert_close(answers(Scope(), gone), whole)
