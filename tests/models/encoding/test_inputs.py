"""Batches of inputs: rows, stacks, groups, and which tokens the axes of a site stand for."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from attlas.models.encoding.inputs import Inputs, Stream, group_by_shape, stack
from attlas.tokens import Tokens


def tokens_of(*texts, segment="text"):
    return Tokens(texts, (None,) * len(texts), (False,) * len(texts), (segment,) * len(texts))


def batch(*ids, **changes):
    """A text model's inputs, one row for each list of ids."""
    rows = torch.tensor(ids)
    given = {
        "arguments": {"input_ids": rows, "attention_mask": torch.ones_like(rows)},
        "tokens": tuple(tokens_of(*map(str, row)) for row in ids),
        "texts": tuple(" ".join(map(str, row)) for row in ids),
        "source": Stream("input_ids", 0, rows.shape[1]),
        "notes": tuple((f"note {row[0]}",) for row in ids),
        **changes,
    }
    return Inputs(**given)


def translation(chain=(7, 8)):
    """A source of three tokens, and two that a decoder has written."""
    source = tokens_of("a", "b", "c")
    return Inputs(
        {
            "input_ids": torch.tensor([[1, 2, 3]]),
            "attention_mask": torch.ones(1, 3),
            "decoder_input_ids": torch.tensor([[0, 7]]),
            "decoder_attention_mask": torch.ones(1, 2),
        },
        (source.followed_by(tokens_of("<s>", "x", segment="prefix")),),
        ("a b c",),
        Stream("input_ids", 0, 3),
        Stream("decoder_input_ids", 3, 5),
        ((),),
        (chain,),
    )


def test_rows_are_taken_in_any_order_and_more_than_once():
    inputs = batch([1, 2], [3, 4], [5, 6], chains=((1,), (3,), (5,)))
    chosen = inputs.rows([2, 0, 2])
    assert chosen.arguments["input_ids"].tolist() == [[5, 6], [1, 2], [5, 6]]
    assert chosen.arguments["attention_mask"].shape == (3, 2)
    assert [tokens.texts for tokens in chosen.tokens] == [("5", "6"), ("1", "2"), ("5", "6")]
    assert chosen.texts == ("5 6", "1 2", "5 6")
    assert chosen.notes == (("note 5",), ("note 1",), ("note 5",))
    assert chosen.chains == ((5,), (1,), (5,))
    assert len(chosen) == 3
    assert len(inputs) == 3
    assert inputs.rows(range(1)).chains == ((1,),)


def test_rows_without_chains():
    assert batch([1, 2], [3, 4]).rows([1]).chains == ()


def test_no_rows():
    assert batch([1, 2]).rows([]).arguments["input_ids"].shape == (0, 2)


def test_stack():
    whole = stack([batch([1, 2], [3, 4]), batch([5, 6])])
    assert whole.arguments["input_ids"].tolist() == [[1, 2], [3, 4], [5, 6]]
    assert whole.texts == ("1 2", "3 4", "5 6")
    assert [tokens[0] for tokens in whole.tokens] == ["1", "3", "5"]
    assert whole.notes == (("note 1",), ("note 3",), ("note 5",))
    assert whole.source == Stream("input_ids", 0, 2)
    assert stack([translation((1,)), translation((2,))]).chains == ((1,), (2,))


def test_a_stack_taken_apart():
    parts = [batch([1, 2]), batch([3, 4])]
    whole = stack(parts)
    for row, part in enumerate(parts):
        again = whole.rows([row])
        assert again.texts == part.texts
        assert again.tokens == part.tokens
        assert again.arguments["input_ids"].equal(part.arguments["input_ids"])


def test_what_can_share_a_batch():
    assert batch([1, 2]).shape == batch([3, 4]).shape
    assert batch([1, 2]).shape != batch([1, 2, 3]).shape
    assert translation((1,)).shape == translation((2,)).shape
    assert translation((1,)).shape != translation((1, 2)).shape
    fewer = batch([1, 2], arguments={"input_ids": torch.tensor([[1, 2]])})
    assert fewer.shape != batch([1, 2]).shape


@pytest.mark.parametrize(
    ("lengths", "most", "groups"),
    [
        ([1, 2, 1, 2, 1], 9, [[0, 2, 4], [1, 3]]),
        ([1, 2, 1, 2, 1], 2, [[0, 2], [1, 3], [4]]),
        ([3, 3, 3], 1, [[0], [1], [2]]),
        ([1, 1, 1, 2], 1, [[0], [1], [2], [3]]),
        ([], 4, []),
    ],
)
def test_groups(lengths, most, groups):
    inputs = [batch(list(range(length))) for length in lengths]
    assert group_by_shape(inputs, most) == groups


@settings(deadline=None)
@given(lengths=st.lists(st.integers(1, 3), max_size=12), most=st.integers(1, 4))
def test_groups_keep_everything_in_order(lengths, most):
    inputs = [batch(list(range(length))) for length in lengths]
    groups = group_by_shape(inputs, most)
    assert sorted(index for group in groups for index in group) == list(range(len(lengths)))
    assert all(group == sorted(group) and len(group) <= most for group in groups)
    assert all(len({lengths[index] for index in group}) == 1 for group in groups)
    assert [group[0] for group in groups] == sorted(group[0] for group in groups)


def test_streams():
    assert translation().source.positions == (0, 1, 2)
    assert translation().prefix.positions == (3, 4)
    assert [each.argument for each in translation().streams()] == ["input_ids", "decoder_input_ids"]
    assert batch([1, 2]).streams() == [Stream("input_ids", 0, 2)]


@pytest.mark.parametrize(
    ("kind", "queries", "keys"),
    [
        ("encoder", (0, 1, 2), (0, 1, 2)),
        ("decoder", (3, 4), (3, 4)),
        ("cross", (3, 4), (0, 1, 2)),
        ("all", (3, 4), (0, 1, 2, 3, 4)),
    ],
)
def test_axes_of_an_encoder_decoder(kind, queries, keys):
    rows, columns = translation().queries_and_keys(kind)
    assert (rows.positions, columns.positions) == (queries, keys)


@pytest.mark.parametrize("kind", ["encoder", "decoder", "vision", "all"])
def test_axes_of_a_single_stack(kind):
    rows, columns = batch([1, 2]).queries_and_keys(kind)
    assert (rows.positions, columns.positions) == ((0, 1), (0, 1))


def test_companions():
    inputs = translation()
    assert inputs.companions(inputs.source) == ["input_ids", "attention_mask"]
    assert inputs.companions(inputs.prefix) == ["decoder_input_ids", "decoder_attention_mask"]


def test_companions_have_an_entry_for_each_token():
    inputs = batch([1, 2, 3])
    extra = {**inputs.arguments, "token_type_ids": torch.zeros(1, 3), "bbox": torch.zeros(1, 3, 4)}
    other = {"labels": torch.zeros(1), "pixels": torch.zeros(1, 5)}
    with_more = batch([1, 2, 3], arguments={**extra, **other})
    assert with_more.companions(with_more.source) == list(extra)


def test_the_lengths_of_source_and_prefix_may_be_the_same():
    inputs = translation()
    same = {**inputs.arguments, "decoder_input_ids": torch.tensor([[0, 7, 8]])}
    alike = Inputs(
        same, inputs.tokens, inputs.texts, inputs.source, Stream("decoder_input_ids", 3, 6)
    )
    assert alike.companions(alike.source) == ["input_ids", "attention_mask"]


def test_a_picture():
    tokens = tokens_of("[CLS]", "0,0", segment="image")
    inputs = Inputs.of_image(torch.zeros(1, 3, 8, 8), tokens, "the picture")
    assert (len(inputs), inputs.texts, inputs.notes) == (1, ("the picture",), ((),))
    assert inputs.source.positions == (0, 1)
    assert inputs.rows([0, 0]).arguments["pixel_values"].shape == (2, 3, 8, 8)
    assert inputs.companions(inputs.source) == ["pixel_values"]
