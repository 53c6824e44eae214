"""The tap of a model that learns: training on eager attention, read before dropout."""

import pytest
import torch
from learners import FAMILIES, batch, classifier

from attlas.models.teaching.reading_row import find_reading_row, reading_weights
from attlas.models.teaching.training_tap import opened_for_training

each_family = pytest.mark.parametrize("family", FAMILIES)


def step(model, open_it):
    """The loss of a training step with dropout, the gradients, and the tap."""
    arguments, labels, _ = batch()
    model.zero_grad()
    torch.manual_seed(7)
    if open_it:
        with opened_for_training(model) as tap:
            loss = model(**arguments, labels=labels).loss
    else:
        tap, loss = None, model(**arguments, labels=labels).loss
    loss.backward()
    return loss.detach(), [each.grad for each in model.parameters()], tap


@each_family
def test_a_step_is_that_on_eager_attention_to_the_bit(family):
    model = classifier(family).train()
    opened, slopes, tap = step(model, True)
    assert model.config._attn_implementation == "sdpa" and model.training
    model.set_attn_implementation("eager")
    loss, expected, _ = step(model, False)
    assert torch.equal(opened, loss)
    for found, wanted in zip(slopes, expected, strict=True):
        assert found is wanted is None or torch.equal(found, wanted)
    assert len(tap.seen.calls) == 2


@each_family
def test_weights_are_read_before_dropout_and_are_in_the_graph(family):
    model = classifier(family, dropout=0.5).train()
    _, _, tap = step(model, True)
    seen = batch()[0]["attention_mask"].bool()
    for call in tap.seen.calls:
        rows = call.weights.sum(dim=-1).transpose(1, 2)[seen]
        torch.testing.assert_close(rows, torch.ones_like(rows), atol=1e-5, rtol=1e-5)
        assert call.weights.requires_grad and call.values.requires_grad
        assert tap.state_of(call.site).shape == (len(seen), seen.shape[1], 16)


@each_family
def test_the_row_that_is_read_is_found(family):
    model = classifier(family).train()
    arguments, _, _ = batch()
    assert find_reading_row(model, arguments) == FAMILIES[family]
    assert model.training and all(each.requires_grad for each in model.parameters())


def test_a_model_that_pools_reads_all():
    model = classifier("ModernBert")
    model.config.classifier_pooling = "mean"
    assert find_reading_row(model, batch()[0]) == "all"


def test_rows_by_rule():
    seen = torch.tensor([[True, True, True, False], [False, True, True, True]])
    assert reading_weights("first", seen).tolist() == [[1, 0, 0, 0], [0, 1, 0, 0]]
    assert reading_weights("last", seen).tolist() == [[0, 0, 1, 0], [0, 0, 0, 1]]
    third = 1 / 3
    torch.testing.assert_close(
        reading_weights("all", seen), torch.tensor([[third] * 3 + [0], [0] + [third] * 3])
    )


def test_changed_keys_change_the_output_and_go_with_the_block():
    model = classifier().eval()
    arguments, _, _ = batch()
    with torch.no_grad():
        before = model(**arguments).logits
        with opened_for_training(model, lambda site, keys: -keys):
            assert not torch.allclose(model(**arguments).logits, before)
        assert torch.equal(model(**arguments).logits, before)
