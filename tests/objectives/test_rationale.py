"""Rationale, worked by hand, and on the attention that transformers gives out."""

from math import log

import pytest
import torch
from learners import batch, classifier, step_of

from attlas.errors import UnknownNameError
from attlas.objectives.rationale import divergence_of, rationale


def test_a_case_by_hand():
    attention = torch.tensor([[[0.5, 0.25, 0.25, 0.0], [0.1, 0.65, 0.25, 0.0]]])  # mean .3 .45 .25
    marks = torch.tensor([[1.0, 1.0, 0.0, 0.0]])
    crossed = -(log(0.3) + log(0.45)) / 2
    assert divergence_of(marks, attention, "cross_entropy").item() == pytest.approx(crossed)
    assert divergence_of(marks, attention, "kl").item() == pytest.approx(crossed - log(2))
    same = torch.tensor([[[0.5, 0.5, 0.0, 0.0]]])
    assert divergence_of(marks, same, "kl").item() == pytest.approx(0, abs=1e-6)


def test_it_is_of_the_row_that_is_read_and_a_text_without_marks_is_skipped():
    arguments, _, marks = batch()
    for family, last in (("Bert", False), ("Llama", True)):
        model = classifier(family).eval()
        model.set_attn_implementation("eager")
        with torch.no_grad():
            maps = model(**arguments, output_attentions=True).attentions[-1]
        found = rationale(step_of(model), divergence="cross_entropy")
        for row in range(len(marks)):
            length = int(arguments["attention_mask"][row].sum())
            read = maps[row, :, length - 1 if last else 0].mean(dim=0)
            wanted = marks[row] / max(1, marks[row].sum())
            seen = wanted > 0
            expected = -(wanted[seen] * read[seen].log()).sum()
            torch.testing.assert_close(found[row], expected, atol=1e-5, rtol=1e-4)
        assert found[2] == found[5] == 0  # no words are marked there


def test_a_published_slip_is_not_made():
    """A softmax of the attention would make a sharp attention look uniform."""
    sharp = torch.tensor([[[1 - 3e-6, 1e-6, 1e-6, 1e-6]]])
    marks = torch.tensor([[1.0, 0.0, 0.0, 0.0]])
    assert divergence_of(marks, sharp, "kl").item() < 1e-5


def test_training_for_it_brings_the_attention_to_the_marks():
    model = classifier(dropout=0.0).train()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    values = []
    for _ in range(30):
        optimizer.zero_grad()
        loss = rationale(step_of(model)).mean()
        loss.backward()
        optimizer.step()
        values.append(loss.item())
    assert values[-1] < 0.3 * values[0]


def test_words_it_does_not_know_are_refused():
    with pytest.raises(UnknownNameError, match="divergence of rationale"):
        rationale(step_of(classifier()), divergence="js")
    with pytest.raises(UnknownNameError, match="rows of rationale"):
        rationale(step_of(classifier()), rows="some")
