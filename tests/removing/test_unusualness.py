"""Unusualness: how strange a text without some of its tokens is to a model."""

from copy import deepcopy

import numpy as np
import pytest
import torch
from known_models import WEIGHT, WEIGHTS, First, bag_of_words, text_of
from subjects import ASKED, TEXTS, arguments, plain, subject

from attlas import Subject
from attlas.catalogue import REMOVALS
from attlas.errors import UnknownNameError, UsageError
from attlas.models.asking.reading import readout_states
from attlas.models.encoding.request import Request
from attlas.removing.removal import removable
from attlas.removing.unusualness import (
    CUT,
    WHOLE,
    _draw,
    _states,
    _texts,
    distances,
    share_above,
    strangeness,
    unusualness,
)

TASK = "sequence classification"


def test_the_state_is_that_of_the_place_where_the_prediction_is_read():
    for task, place in ((TASK, 0), ("causal lm", -1)):
        text = TEXTS[task][0]
        (question,) = subject(task).ask([text], Request())
        with torch.no_grad():
            states = plain(task).base_model(**arguments(task, text), output_hidden_states=True)
        if task == TASK:
            torch.testing.assert_close(readout_states(question)[0], states[0][0, place])
        else:  # a norm follows on the last block, which the last hidden state includes
            normed = plain(task).base_model.ln_f(readout_states(question)[0])
            torch.testing.assert_close(normed, states[0][0, place])


def test_a_state_read_at_many_places_is_their_mean():
    (question,) = bag_of_words().ask([text_of(5, seed=0)], Request())
    table = bag_of_words().model.bert.embeddings.word_embeddings.weight
    expected = table[question.inputs.arguments["input_ids"][0]].mean(dim=0)
    found = readout_states(question)[0]
    torch.testing.assert_close(found[0], expected[0])  # the weight passes the blocks unchanged


def test_runs_leave_tokens_in_a_row_and_as_many_as_the_sets():
    sizes = []
    for seed in range(200):
        sets, runs = _draw(5, 3, np.random.default_rng(seed))
        assert sets.shape == runs.shape == (3, 5)
        assert (sets.sum(axis=1) == runs.sum(axis=1)).all()
        for run in runs:
            kept = np.flatnonzero(~run)
            assert len(kept) == kept[-1] - kept[0] + 1
        sizes.extend(sets.sum(axis=1))
    assert set(sizes) == {1, 2, 3, 4}
    assert np.bincount(sizes)[1:].min() > 100  # of 600, 150 each are expected
    assert [len(each) for each in _draw(1, 3, np.random.default_rng(0))] == [0, 0]


def test_a_text_without_tokens_is_read_like_the_text_that_is_left():
    texts = TEXTS[TASK]
    asked = _texts(list(subject(TASK).ask(texts, Request())))
    counts = [len(removable(each, 0)) for each in asked]
    ways = [
        _draw(count, versions, np.random.default_rng(0))[0]
        for count, versions in zip(counts, (2, 1, 3), strict=False)
    ]
    for text, own, states in zip(texts, ways, _states(asked, ways, "delete"), strict=True):
        assert len(own) == len(states)
        ids = arguments(TASK, text)["input_ids"][0]
        for way, state in zip(own, states, strict=True):
            left = torch.cat([ids[:1], ids[1:-1][~torch.from_numpy(way)], ids[-1:]])
            with torch.no_grad():
                expected = plain(TASK).bert(left[None])[0][0, 0]
            np.testing.assert_allclose(state, expected.numpy(), atol=1e-5)


@pytest.mark.parametrize("how", REMOVALS)
def test_texts_that_share_a_batch_have_the_states_they_have_alone(how, monkeypatch):
    asked = _texts(list(subject(TASK).ask(TEXTS[TASK], Request())))
    counts = [len(removable(each, 0)) for each in asked]
    ways = [_draw(count, 3, np.random.default_rng(1))[0] for count in counts]
    alone = _states(asked, ways, how)
    monkeypatch.setattr("attlas.removing.unusualness.NEAR", {"cpu": 16})
    calls = []
    monkeypatch.setattr(
        "attlas.removing.unusualness.readout_states",
        lambda question: calls.append(len(question)) or readout_states(question),
    )
    together = _states(asked, ways, how)
    assert calls == [sum(map(len, ways))]
    for one, other in zip(alone, together, strict=True):
        np.testing.assert_allclose(other, one, atol=1e-5)


def changed_bag(change):
    """A bag of words that `change` was done to."""
    model = deepcopy(bag_of_words().model)
    with torch.no_grad():
        change(model)
    return Subject(model, bag_of_words().tokenizer, name="changed bag")


def bag_texts(count):
    return [text_of(4 + seed % 9, seed) for seed in range(count)]


@pytest.mark.parametrize("how", REMOVALS)
def test_a_model_that_sees_no_difference_has_a_half(how):
    def read_first_token(model):  # in a bag, no token moves to another
        model.bert.pooler = First()

    asked = list(changed_bag(read_first_token).ask(bag_texts(5), Request()))
    found = unusualness(asked, how)
    assert found.usual == CUT
    np.testing.assert_array_equal(found.values, 0.5)


def test_a_mask_like_no_word_is_strange_and_deletion_is_not():
    def change(model):
        mask = bag_of_words().tokenizer.mask_token_id
        model.bert.embeddings.word_embeddings.weight[mask] = 99.0

    asked = list(changed_bag(change).ask(bag_texts(20), Request()))
    assert unusualness(asked, "mask").values.mean() > 0.99
    # In a bag, the words that are left say the same in any order and at any place.
    assert unusualness(asked, "delete").values.mean() == pytest.approx(0.5, abs=0.12)


def train(made, masking):
    """Train the words of a bag on texts with a random share of the words masked, or none."""
    words, table = made.tokenizer, made.model.bert.embeddings.word_embeddings.weight
    true = torch.tensor(list(WEIGHTS.values()))
    first, mask = words.convert_tokens_to_ids(next(iter(WEIGHTS))), words.mask_token_id
    optimizer = torch.optim.Adam([table], 0.1)
    torch.manual_seed(0)
    for _ in range(100):
        drawn = torch.randint(len(true), (32, 8))
        hidden = torch.rand(drawn.shape) < torch.rand(32, 1) * masking
        right = true[drawn].masked_fill(hidden, 0).sum(dim=1) > 0
        shown = (drawn + first).masked_fill(hidden, mask)
        optimizer.zero_grad()
        made.model(input_ids=shown, labels=right.long()).loss.backward()
        optimizer.step()


def test_masks_are_strange_to_a_model_that_was_trained_without_them():
    def change(model):  # a mask says something at first, and else it has no features
        row = model.bert.embeddings.word_embeddings.weight[bag_of_words().tokenizer.mask_token_id]
        row.zero_()
        row[WEIGHT] = 9

    found = []
    for masking in (True, False):
        made = changed_bag(change)
        train(made, masking)
        found.append(unusualness(list(made.ask(bag_texts(20), Request())), "mask").values.mean())
    assert found[0] < 0.65
    assert found[1] > 0.85


@pytest.mark.parametrize("task", ["token classification", "image classification"])
def test_targets_and_patches_at_places_are_compared_with_whole_texts(task):
    asked = list(subject(task).ask(TEXTS[task], Request(**ASKED.get(task, {}))))
    found = unusualness(asked, "mask")
    assert found.usual == WHOLE
    assert ((found.values >= 0) & (found.values <= 1)).all()


def test_a_text_of_one_token_has_no_figure():
    texts = ["film", *bag_texts(3)]
    values = unusualness(list(bag_of_words().ask(texts, Request())), "mask").values
    assert np.isnan(values).tolist() == [True, False, False, False]


def test_the_seed_decides():
    asked = list(subject(TASK).ask([*TEXTS[TASK], "a dog was not good at it"], Request()))
    first = unusualness(asked, "delete", seed=1, versions=6).values
    np.testing.assert_array_equal(first, unusualness(asked, "delete", 1, 6).values)
    assert (first != unusualness(asked, "delete", 2, 6).values).any()


@pytest.mark.parametrize("how", REMOVALS)
def test_the_model_is_left_as_it_was(how):
    made = changed_bag(lambda model: model.train())
    unusualness(list(made.ask(bag_texts(3), Request())), how)
    assert made.model.training
    assert all(each.requires_grad and each.grad is None for each in made.model.parameters())
    assert not any(module._forward_hooks for module in made.model.modules())


def test_too_few_texts_and_unknown_removals_are_refused():
    asked = list(subject(TASK).ask(TEXTS[TASK], Request()))
    with pytest.raises(UsageError, match="3 texts or more, not 2"):
        unusualness(list(subject(TASK).ask(TEXTS[TASK][:2], Request())), "mask")
    with pytest.raises(UnknownNameError, match="removal"):
        unusualness(asked, "forget")


def by_definition(sample, others):
    """Mahalanobis' distances by the covariance of Ledoit and Wolf, from whole matrices."""
    count, features = sample.shape
    centred = sample - sample.mean(axis=0)
    covariance = sum(np.outer(each, each) for each in centred) / count
    target = np.trace(covariance) / features * np.eye(features)
    noise = sum(((np.outer(each, each) - covariance) ** 2).sum() for each in centred) / count**2
    share = min(1.0, noise / ((covariance - target) ** 2).sum())
    inverse = np.linalg.inv((1 - share) * covariance + share * target)
    moved = others - sample.mean(axis=0)
    return np.sqrt(np.einsum("nf,fg,ng->n", moved, inverse, moved) / features)


@pytest.mark.parametrize(("count", "features"), [(50, 4), (6, 20), (4, 3)])
def test_distances_follow_their_definition(count, features):
    random = np.random.default_rng(count)
    scales = np.linspace(0.2, 3.0, features)
    sample = random.normal(1.0, scales, (count, features))
    others = random.normal(0.0, 2.0, (7, features))
    np.testing.assert_allclose(distances(sample, others), by_definition(sample, others))


def test_vectors_of_the_same_kind_are_about_one_away():
    random = np.random.default_rng(0)
    sample, others = random.normal(0, [1, 5, 9], (2, 300, 3))
    assert np.sqrt((distances(sample, others) ** 2).mean()) == pytest.approx(1, abs=0.1)


def index(sample, one, other):
    usual = distances(sample, sample)
    return share_above(*(strangeness(distances(sample, each), usual) for each in (one, other)))


def test_the_same_kind_is_a_half_and_another_is_one():
    random = np.random.default_rng(1)
    sample, one, other = random.normal(0, 1, (3, 400, 30))
    assert index(sample, one, other) == pytest.approx(0.5, abs=0.05)
    assert index(sample, one + 9, other) == 1
    assert index(sample, other, one + 9) == 0


def test_vectors_that_collapse_into_the_middle_are_strange():
    random = np.random.default_rng(2)
    sample, one, other = random.normal(0, 1, (3, 200, 30))
    assert distances(sample, one / 9).max() < distances(sample, other).min()
    assert index(sample, one / 9, other) == 1


def test_what_differs_by_rounding_alone_is_a_tie():
    random = np.random.default_rng(3)
    same = np.full((20, 6), 0.7)
    noise = random.normal(0, 1e-7, (2, 20, 6))
    assert index(same, same + noise[0], same + noise[1]) == 0.5
    assert index(same * 0, same * 0, same * 0) == 0.5
    assert share_above(np.array([1.0, 2.0, 2.0]), np.ones(3)) == pytest.approx(2.5 / 3)


def test_one_vector_has_no_spread():
    with pytest.raises(UsageError, match="at least two vectors, not 1"):
        distances(np.ones((1, 3)), np.ones((2, 3)))
