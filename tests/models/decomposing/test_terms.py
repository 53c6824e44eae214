"""Terms that are made a part at a time: the same terms, and never all of them at once."""

import pytest
import torch
from largest import Largest
from subjects import small, subject
from tiny import TOWER

import attlas
from attlas.methods import METHODS
from attlas.methods.support.decomposition import aligned_shares
from attlas.models.decomposing import term_nodes, term_steps, terms
from attlas.models.decomposing.terms import (
    OwnTerms,
    TermParts,
    TermsAtOnce,
    TermsInParts,
    own_terms,
)

TEXT = "a warm and funny film " * 3
EVERYTHING = slice(0, 6)


def dense(stream):
    """Each token's own term, written out."""
    found = stream.new_zeros(stream.shape[1] + 1, *stream.shape)
    for token in range(stream.shape[1]):
        found[token, :, token] = stream[:, token]
    return found


@pytest.fixture
def stream():
    return torch.randn(2, 5, 4, dtype=torch.float64)


def test_each_token_is_its_own_term_whatever_is_moved(stream):
    own = own_terms(TermParts(6, 2), stream)
    assert torch.equal(own.whole(), dense(stream))
    moved = term_nodes.each_term(torch.transpose, (stream, 1, 2), {}, [(id(stream), own)])
    assert isinstance(moved, OwnTerms) and moved.axis == 2
    assert torch.equal(moved.whole(), dense(stream).transpose(2, 3))
    flat = term_nodes.each_term(torch.Tensor.view, (stream, 10, 4), {}, [(id(stream), own)])
    assert isinstance(flat, OwnTerms) and flat.axis is None  # the rows go through the tokens twice
    assert torch.equal(flat.part(slice(3, 6)), dense(stream)[3:].reshape(3, 10, 4))


def test_tokens_that_are_their_own_terms_are_mixed_without_a_sum(stream):
    weights = torch.rand(2, 5, 5, dtype=torch.float64)
    own = own_terms(TermParts(6, 4), stream)
    found = term_nodes.mixed(weights, own)
    assert torch.allclose(found.whole(), term_steps.mix(weights, dense(stream)))


def test_heads_of_values_are_mixed_by_weights_of_their_own(stream):
    weights, values = torch.rand(2, 2, 5, 5, dtype=torch.float64), stream.view(2, 5, 2, 2)
    own = own_terms(TermParts(6, 4), stream)
    split = term_nodes.each_term(torch.Tensor.view, (stream, 2, 5, 2, 2), {}, [(id(stream), own)])
    heads = term_nodes.each_term(torch.transpose, (values, 1, 2), {}, [(id(values), split)])
    expected = term_steps.mix(weights, dense(stream).view(6, 2, 5, 2, 2).transpose(2, 3))
    assert torch.allclose(term_nodes.mixed(weights, heads).whole(), expected)


def test_values_go_through_the_slices_of_their_heads_before_they_are_mixed(stream):
    """With two heads side by side, and in another order, where they do not go through slices."""
    weights, values = torch.rand(2, 2, 5, 5, dtype=torch.float64), stream.view(2, 5, 2, 2)
    own = own_terms(TermParts(6, 4), stream)
    split = term_nodes.each_term(torch.Tensor.view, (stream, 2, 5, 2, 2), {}, [(id(stream), own)])
    heads = term_nodes.each_term(torch.transpose, (values, 1, 2), {}, [(id(values), split)])
    mixed = term_nodes.mixed(weights, heads)
    whole, matrix = weights @ values.transpose(1, 2), torch.rand(3, 4, dtype=torch.float64)
    bias = torch.rand(3, dtype=torch.float64)
    for order, fits in (((0, 2, 1, 3), True), ((0, 2, 3, 1), False)):
        put = term_nodes.each_term(torch.permute, (whole, order), {}, [(id(whole), mixed)])
        moved = whole.permute(order)
        rows = term_nodes.each_term(torch.flatten, (moved, 2), {}, [(id(moved), put)])
        assert rows.in_rows is fits
        found = term_nodes.projected(rows, matrix, bias, None, False).whole()
        expected = rows.whole() @ matrix.T
        expected[-1] += bias
        torch.testing.assert_close(found, expected)
        torch.testing.assert_close(found.sum(dim=0), moved.flatten(2) @ matrix.T + bias)


def test_a_bias_is_shared_by_inner_products_before_terms_are_projected():
    whole, weight, bias = torch.randn(6, 2, 5, 4), torch.randn(3, 4), torch.randn(3)
    given = TermsAtOnce(TermParts(6, 2), lambda: whole)
    given.whole()
    early = term_nodes.projected(given, weight, bias, aligned_shares, True)
    late = term_nodes.projected(given, weight, bias, aligned_shares, False)
    assert isinstance(early, TermsInParts) and isinstance(late, TermsAtOnce)
    torch.testing.assert_close(early.whole(), late.whole())
    sums = whole.sum(dim=0) @ weight.T + bias
    torch.testing.assert_close(early.whole().sum(dim=0), sums)


def test_a_part_is_made_once_for_all_that_ask():
    asked = []
    made = TermsInParts(TermParts(6, 2), lambda which: asked.append(which) or torch.ones(2, 3))
    for which in made.parts:
        assert made.part(which) is made.part(which)
    assert asked == list(made.parts)
    assert made.whole().shape == (6, 3) and made.is_held
    made.part(EVERYTHING)
    assert len(asked) == 6  # the whole was made from parts, once


def subjects():
    yield "BERT", subject("sequence classification")
    llama = small("Llama", "ForCausalLM", "bpe", **TOWER, num_key_value_heads=2)
    yield "Llama", attlas.Subject(llama.model, llama.tokenizer)


@pytest.mark.parametrize("method", ["globenc", "alti", "decompx"])
@pytest.mark.parametrize("numbers", [1, 1000])
def test_the_size_of_parts_changes_nothing(method, numbers, monkeypatch):
    for name, own in subjects():
        (question,) = own.ask([TEXT])
        expected = METHODS[method].score(question, {}).scores
        with monkeypatch.context() as patch:
            patch.setattr(terms, "NUMBERS_AT_ONCE", {"cpu": numbers})
            found = METHODS[method].score(question, {}).scores
        torch.testing.assert_close(found, expected, rtol=1e-5, atol=1e-6, msg=name)


@pytest.mark.parametrize("method", ["globenc", "alti"])
def test_terms_of_one_block_are_never_all_there(method, monkeypatch):
    """What a part and the model itself make is all: no vector for each pair of tokens."""
    own = subject("sequence classification")
    (question,) = own.ask([TEXT + "and a"])
    tokens, config = len(question.inputs.tokens[0]), own.model.config
    METHODS[method].score(question, {})
    monkeypatch.setattr(terms, "NUMBERS_AT_ONCE", {"cpu": 4 * tokens * config.hidden_size})
    with Largest() as seen:
        METHODS[method].score(question, {})
    of_model = tokens * max(config.num_attention_heads * tokens, config.intermediate_size)
    assert seen.numbers <= max(4 * tokens * config.hidden_size, of_model)
    assert seen.numbers < tokens**2 * config.hidden_size / 2
