"""Steps applied to terms: what they cost, beside what is computed without them."""

import pytest
import torch
from largest import Largest
from subjects import small, subject
from tiny import TOWER

from attlas.methods import METHODS
from attlas.models.decomposing import term_steps


@pytest.mark.parametrize("lead", [(), (2,), (2, 3)])
def test_terms_are_mixed_without_a_copy_of_the_weights_for_each(lead):
    terms = torch.randn(9, *lead, 8, 2, dtype=torch.float64)
    weights = torch.randn(*lead, 8, 8, dtype=torch.float64)
    with Largest() as seen:
        found = term_steps.mix(weights, terms)
    assert torch.allclose(found, torch.stack([weights @ each for each in terms]))
    assert seen.numbers <= terms.numel()


@pytest.fixture
def projected(monkeypatch):
    """The terms that go through matrices, and the matrices: of values that are mixed, own ones."""
    found = []
    plain, of_mixed = term_steps.project, term_steps.project_mixed

    def noted(terms, weight):
        found.append((terms.shape, weight))
        return plain(terms, weight)

    def noted_mixed(weights, pair, matrix, part):
        found.append((pair.shape, matrix))
        return of_mixed(weights, pair, matrix, part)

    monkeypatch.setattr(term_steps, "project", noted)
    monkeypatch.setattr(term_steps, "project_mixed", noted_mixed)
    return found


@pytest.mark.parametrize(("method", "matrices"), [("globenc", 2), ("alti", 2), ("decompx", 4)])
def test_terms_that_no_one_needs_are_not_computed(method, matrices, projected):
    own = subject("sequence classification")
    METHODS[method].score(own.ask(["a warm and funny film"])[0], {})
    behind = 2 if method == "decompx" else 0  # the pooler and the classifier
    assert len(projected) == matrices * len(own.sites) + behind


@pytest.mark.parametrize("method", ["globenc", "alti"])
@pytest.mark.parametrize("task", ["sequence classification", "causal lm", "grouped heads"])
def test_no_pair_of_tokens_goes_through_a_matrix_of_its_own(task, method, projected):
    """The sum over heads comes last: values of tokens go through the slices of their heads."""
    grouped = {**TOWER, "num_key_value_heads": 2}
    own = small("Llama", "ForCausalLM", "bpe", **grouped) if "heads" in task else subject(task)
    (question,) = own.ask(["a warm and funny film"])
    METHODS[method].score(question, {})
    tokens = len(question.inputs.tokens[0])
    assert projected and all(
        shape.numel() <= 2 * tokens * weight.shape[-1] for shape, weight in projected
    )


@pytest.mark.parametrize("method", ["globenc", "alti", "decompx"])
def test_no_step_makes_more_than_the_terms_of_the_widest_state(method):
    own = subject("sequence classification")
    (question,) = own.ask(["a warm and funny film " * 3])
    tokens, config = len(question.inputs.tokens[0]), own.model.config
    width = config.intermediate_size if method == "decompx" else config.hidden_size
    assert config.num_attention_heads * tokens > width  # the weights, once for each term, are more
    METHODS[method].score(question, {})
    with Largest() as seen:
        METHODS[method].score(question, {})
    assert seen.numbers <= (tokens + 1) * tokens * width
