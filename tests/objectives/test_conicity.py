"""Conicity, worked by hand, and on the states of a recurrent model."""

import pytest
import torch
from learners import TEXTS, batch, classifier, step_of

import attlas
from attlas.models.teaching.training_tap import opened_for_training
from attlas.objectives.conicity import conicity, conicity_of


def test_cases_by_hand():
    seen = torch.ones(1, 3, dtype=torch.bool)
    same = torch.tensor([[[[1.0, 0.0], [2.0, 0.0], [5.0, 0.0]]]])
    assert conicity_of(same, seen).item() == pytest.approx(1)
    apart = torch.tensor([[[[1.0, 0.0], [0.0, 1.0], [9.0, 9.0]]]])
    two = torch.tensor([[True, True, False]])  # the third does not count
    assert conicity_of(apart, two).item() == pytest.approx(0.5**0.5)
    heads = torch.cat([same, same * 0 + torch.tensor([[1.0, 0], [0, 1], [-1, -1]])], dim=1)
    # The second head: its mean is zero, which has no direction, and counts as no likeness.
    assert conicity_of(heads, seen).item() == pytest.approx(0.5)
    assert conicity_of(same, ~seen).item() == 0


def test_states_are_what_enters_the_attention():
    model = classifier().eval()
    arguments, _, _ = batch()
    step = step_of(model)
    with torch.no_grad():
        states = model(**arguments, output_hidden_states=True).hidden_states
    expected = torch.stack([conicity_of(each[:, None], step.content) for each in states[:2]])
    torch.testing.assert_close(conicity(step, of="states"), expected.mean(0), atol=1e-5, rtol=1e-4)


def test_of_a_recurrent_model_it_is_that_of_the_states_of_its_words():
    subject = attlas.train("lstm", TEXTS, epochs=1, vector_size=8).subject
    inputs = subject.encode("a fine film").arguments
    with opened_for_training(subject.model) as tap:
        states = subject.model.encode(**inputs).hidden
        subject.model(**inputs)
    (call,) = tap.seen.calls
    torch.testing.assert_close(call.values[:, 0], states)


def test_training_for_it_lowers_it():
    model = classifier(dropout=0.0).train()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    values = []
    for _ in range(30):
        optimizer.zero_grad()
        loss = conicity(step_of(model)).mean()
        loss.backward()
        optimizer.step()
        values.append(loss.item())
    assert values[-1] < 0.5 * values[0]
