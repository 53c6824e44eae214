"""Removal: what is handed to the model when tokens are taken away, one at a time or in sets."""

import torch
from subjects import TEXTS, ask, subject

from attlas.models.resolve import Request
from attlas.quantities.removal import mask_all, masked_by, removable, remove_each

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
    rows, columns = tokens.grid
    hidden = torch.zeros(1, len(tokens), dtype=torch.bool)
    hidden[0, 1 + columns + 2] = True  # behind [CLS]: row 1, column 2
    (part,) = masked_by(question, hidden)
    blank = part.inputs.arguments["pixel_values"][0]
    height, width = pixels.shape[-2] // rows, pixels.shape[-1] // columns
    covered = torch.zeros_like(pixels, dtype=torch.bool)
    covered[:, height : 2 * height, 2 * width : 3 * width] = True
    assert (blank[covered] == 0).all()
    assert torch.equal(blank[~covered], pixels[~covered])
