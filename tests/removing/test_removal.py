"""Removal: what is handed to the model when tokens are taken away, one at a time or in sets."""

from itertools import product

import numpy as np
import pytest
import torch
from subjects import TEXTS, ask, random_attention, subject

from attlas.catalogue import REMOVALS
from attlas.errors import UnsupportedModelError
from attlas.models.asking.scores import target_scores
from attlas.models.encoding.request import Request
from attlas.removing.erasures import Erasures
from attlas.removing.operators import close
from attlas.removing.removal import mask_all, masked_by, removable, remove_each

TASK = "sequence classification"


def two():
    """Two texts of equal length in one question."""
    texts = ["the film was not good", "the film was not good"]
    (question,) = subject(TASK).ask(texts, Request())
    return question


def test_each_place_is_left_out_of_its_own_row():
    question = two()
    ids = question.inputs.arguments["input_ids"]
    places = [(0, 1), (1, 2), (1, 3)]
    ((chunk, inputs),) = remove_each(question, places, "delete")
    assert list(chunk) == places
    for (row, position), left, tokens in zip(
        places, inputs.arguments["input_ids"], inputs.tokens, strict=True
    ):
        whole = ids[row].tolist()
        assert left.tolist() == whole[:position] + whole[position + 1 :]
        own = question.inputs.tokens[row]
        assert list(tokens) == [text for i, text in enumerate(own) if i != position]


def test_sets_are_masked_in_the_rows_they_are_of():
    question = two()
    mask = question.subject.tokenizer.mask_token_id
    ids = question.inputs.arguments["input_ids"]
    hidden = torch.zeros(3, ids.shape[1], dtype=torch.bool)
    hidden[0, 1] = hidden[1, 2] = hidden[1, 3] = True
    (part,) = masked_by(question, hidden, [1, 0, 1])
    for row, own, given in zip([1, 0, 1], hidden, part.inputs.arguments["input_ids"], strict=True):
        assert given.tolist() == ids[row].masked_fill(own, mask).tolist()
    assert part.targets == tuple(question.targets[row] for row in [1, 0, 1])


def test_all_that_may_be_removed_is_masked():
    question = ask(TASK)
    given = mask_all(question).arguments["input_ids"][0].tolist()
    mask = question.subject.tokenizer.mask_token_id
    content = removable(question, 0)
    assert [i for i, number in enumerate(given) if number == mask] == content
    assert len(content) == len(question.inputs.tokens[0]) - 2


def test_hidden_patches_are_blank_and_the_others_stay():
    question = ask("image classification", TEXTS["image classification"][0])
    pixels = question.inputs.arguments["pixel_values"][0]
    tokens = question.inputs.tokens[0]
    rows, columns = tokens.grids["image"]
    hidden = torch.zeros(1, len(tokens), dtype=torch.bool)
    hidden[0, 1 + columns + 2] = True  # behind [CLS]: row 1, column 2
    (part,) = masked_by(question, hidden)
    blank = part.inputs.arguments["pixel_values"][0]
    height, width = pixels.shape[-2] // rows, pixels.shape[-1] // columns
    covered = torch.zeros_like(pixels, dtype=torch.bool)
    covered[:, height : 2 * height, 2 * width : 3 * width] = True
    assert (blank[covered] == 0).all()
    assert torch.equal(blank[~covered], pixels[~covered])


def closed(weights, places):
    """Attention `[head, query, key]` with keys closed but to themselves, by a loop over entries."""
    new = weights.clone()
    for head, query in product(range(weights.shape[0]), range(weights.shape[1])):
        gone = [place for place in places if place != query]
        new[head, query, gone] = 0
        new[head, query] *= weights[head, query].sum() / new[head, query].sum()
    return new


def test_closing_keys_shares_their_weight_among_the_others():
    weights = random_attention(2, 3, 5, 5)
    hidden = torch.tensor([[0, 1, 0, 1, 0], [0, 0, 0, 0, 1]], dtype=torch.bool)
    found = close(hidden, to_itself=False).change(weights, torch.ones_like(weights).bool())
    expected = torch.stack([closed(weights[0], [1, 3]), closed(weights[1], [4])])
    torch.testing.assert_close(found, expected)


def test_a_key_closed_to_itself_has_no_weight():
    weights = random_attention(1, 1, 3, 4)
    hidden = torch.tensor([[False, True, False, True]])
    found = close(hidden, to_itself=True).change(weights, torch.ones_like(weights).bool())
    kept = weights[..., [0, 2]]
    torch.testing.assert_close(found[..., [0, 2]], kept / kept.sum(-1, keepdim=True))
    assert not found[..., [1, 3]].any()


def test_other_keys_than_tokens_are_refused():
    weights = random_attention(1, 1, 3, 4)
    edit = close(torch.zeros(1, 3, dtype=torch.bool), to_itself=False)
    with pytest.raises(UnsupportedModelError, match="over 4 keys in 1 rows, and the text has 3"):
        edit.change(weights, torch.ones_like(weights).bool())


@pytest.mark.parametrize("how", REMOVALS)
def test_each_place_and_sets_of_one_are_the_same(how):
    question = two()
    places = [(0, 1), (1, 2), (1, 3)]
    found = torch.zeros(3)
    for chunk, inputs in remove_each(question, places, how):
        rows = [places.index(place) for place in chunk]
        found[rows] = target_scores(
            question.rows([row for row, _ in chunk]).about(inputs), "probability"
        )
    erasures = Erasures([question], how)
    content = erasures.content(0)
    for (row, position), each in zip(places, found, strict=True):
        way = np.array([[place == position for place in content]])
        assert erasures.of(question.order[row], way).probability[0] == pytest.approx(
            float(each), abs=1e-6
        )


@pytest.mark.parametrize("how", ["pad", "zero_embedding", "knock_out"])
def test_the_model_is_left_as_it_was(how):
    question = ask(TASK)
    before = target_scores(question, "logit")
    for _ in remove_each(question, [(0, 2)], how):
        pass
    assert torch.equal(target_scores(question, "logit"), before)
