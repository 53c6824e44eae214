"""Deception, worked by hand, and the words that it hides."""

from math import log

import pytest
import torch
from learners import batch, classifier, step_of, tokens

from attlas.objectives.deception import deception, occurrences, penalty


def test_a_case_by_hand():
    attention = torch.tensor([[[0.5, 0.25, 0.25], [0.1, 0.1, 0.8]]])
    hidden = torch.tensor([[False, True, True]])
    each = [-log(1 - 0.5), -log(1 - 0.9)]
    assert penalty(attention, hidden, "mean").item() == pytest.approx(sum(each) / 2)
    assert penalty(attention, hidden, "max").item() == pytest.approx(max(each))
    assert torch.isfinite(penalty(attention, ~hidden | hidden, "mean")).all()  # all of it


def test_it_is_that_of_pruthi_on_all_layers():
    arguments, _, marks = batch()
    model = classifier().eval()
    model.set_attn_implementation("eager")
    with torch.no_grad():
        maps = model(**arguments, output_attentions=True).attentions
    mass = (torch.stack([each[:, :, 0] for each in maps]) * marks[:, None]).sum(-1)
    expected = -torch.log1p(-mass).mean(dim=(0, 2))
    torch.testing.assert_close(deception(step_of(model)), expected, atol=1e-5, rtol=1e-4)


def test_words_are_found_wherever_they_stand():
    ids = torch.tensor([[1, 2, 3, 2, 3], [2, 3, 9, 9, 2]])
    assert occurrences(ids, [2, 3]).tolist() == [
        [False, True, True, True, True],
        [True, True, False, False, False],
    ]
    assert not occurrences(ids, []).any() and not occurrences(ids, [1] * 9).any()
    step = step_of(classifier().eval(), marked=False)
    named = deception(step, words="boring")
    assert (named > 0).tolist() == [number == 3 for number in range(len(named))]
    both = deception(step, words=("boring", "fox"))
    assert (both > 0).tolist() == [number in (2, 3) for number in range(len(both))]
    assert tokens().decode(step.arguments["input_ids"][3][step.content[3]]).endswith("boring")
