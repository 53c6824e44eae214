"""Steps applied to terms: what they cost, beside what is computed without them."""

import pytest
import torch
from largest import Largest
from subjects import subject

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


@pytest.mark.parametrize(("method", "matrices"), [("globenc", 2), ("alti", 2), ("decompx", 4)])
def test_terms_that_no_one_needs_are_not_computed(method, matrices, monkeypatch):
    own, projected = subject("sequence classification"), []
    plain = term_steps.project

    def noted(terms, weight):
        projected.append(weight)
        return plain(terms, weight)

    monkeypatch.setattr(term_steps, "project", noted)
    METHODS[method].score(own.ask(["a warm and funny film"])[0], {})
    behind = 2 if method == "decompx" else 0  # the pooler and the classifier
    assert len(projected) == matrices * len(own.sites) + behind


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
