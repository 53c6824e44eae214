"""Masked: which words are masked, and the loss on what is left."""

import pytest
import torch
from learners import batch, classifier, step_of, tokens

from attlas.errors import UsageError
from attlas.objectives.masked import drawn, masked


def test_words_alone_are_masked_from_none_to_all():
    content = torch.ones(4000, 10, dtype=torch.bool)
    content[:, 0] = False
    gone = drawn(content, 1.0, torch.Generator().manual_seed(0))
    shares = gone[:, 1:].float().mean(dim=1)
    assert not gone[:, 0].any() and shares.min() == 0 and shares.max() == 1
    assert shares.mean().item() == pytest.approx(0.5, abs=0.02)
    few = drawn(content, 0.2, torch.Generator().manual_seed(0))[:, 1:].float().mean()
    assert few.item() == pytest.approx(0.1, abs=0.01)


def test_it_is_the_loss_of_the_masked_texts():
    model = classifier().eval()
    step = step_of(model)
    torch.manual_seed(3)
    found = masked(step)
    again = step_of(model)
    torch.manual_seed(3)
    gone = drawn(again.content, 1.0, again.random)
    arguments, labels, _ = batch()
    ids = arguments["input_ids"].masked_fill(gone, tokens().mask_token_id)
    logits = model(**{**arguments, "input_ids": ids}).logits
    expected = torch.nn.functional.cross_entropy(logits, labels, reduction="none")
    torch.testing.assert_close(found, expected, atol=1e-5, rtol=1e-4)
    assert gone.any() and not gone[~again.content].any()


def test_a_share_beyond_all_is_refused():
    with pytest.raises(UsageError, match="most of masked"):
        masked(step_of(classifier()), most=1.5)
