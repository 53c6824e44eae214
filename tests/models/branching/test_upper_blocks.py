import pytest
import tiny
import torch
from subjects import ask, small
from torch import nn

from attlas.errors import UsageError
from attlas.models.asking.scores import run_logits
from attlas.models.branching.upper_blocks import find_upper_blocks
from attlas.models.facts.evaluation_mode import evaluation_mode
from attlas.models.tap.edits import replace
from attlas.results import Site

TASKS = ("sequence classification", "causal lm", "sequence to sequence")


def random_weights(top, site):
    own = top.repeated(top.clean[site].weights)
    return torch.rand(own.shape, generator=torch.Generator().manual_seed(1)).softmax(-1)


def agrees_with_the_whole_model(question, site, copies=3):
    top = find_upper_blocks(question, (site,), copies)
    weights = random_weights(top, site)
    edit = replace(weights).at(kind=site.kind, layer=site.layer)
    with torch.no_grad(), evaluation_mode(question.subject.model):
        found = top.run({site: weights})
        with question.subject.tap(edit):
            whole = run_logits(question.rows(list(range(len(question))) * copies))
    assert torch.allclose(found.logits, whole, rtol=1e-4, atol=1e-4)
    assert torch.equal(found.attention[site], weights)


@pytest.mark.parametrize("task", TASKS)
@pytest.mark.parametrize("place", [0, -1])
def test_the_top_gives_what_the_whole_model_gives(task, place):
    question = ask(task)
    agrees_with_the_whole_model(question, question.subject.sites[place])


def test_a_block_that_is_called_again_and_again_stands_still_only_below():
    subject = small("Albert", "ForSequenceClassification", **tiny.BERT_SHAPE, embedding_size=16)
    (question,) = subject.ask(["the film was not good"])
    agrees_with_the_whole_model(question, subject.sites[-1])


def test_blocks_below_are_not_run():
    question = ask("sequence classification")
    first, last = question.subject.model.bert.encoder.layer
    top = find_upper_blocks(question, question.subject.sites[-1:])
    calls = []
    handles = [
        block.attention.register_forward_hook(lambda *_, name=name: calls.append(name))
        for name, block in (("first", first), ("last", last))
    ]
    with torch.no_grad():
        top.run({})
    for handle in handles:
        handle.remove()
    assert calls == ["last"]


def test_the_model_is_whole_again():
    question = ask("causal lm")
    top = find_upper_blocks(question, question.subject.sites[-1:])
    with torch.no_grad():
        before = run_logits(question)
        top.run({})
        after = run_logits(question)
    blocks = [module for module in question.subject.model.modules() if "forward" in vars(module)]
    assert blocks == []
    assert torch.equal(before, after)


def test_gradients_reach_the_attention():
    question = ask("sequence classification")
    site = question.subject.sites[-1]
    top = find_upper_blocks(question, (site,))
    weights = random_weights(top, site).requires_grad_()
    with evaluation_mode(question.subject.model):
        (ours,) = torch.autograd.grad(top.run({site: weights}).logits[0, 0, 0], weights)
        step = torch.zeros_like(weights).index_fill(2, torch.tensor([0]), 1e-2)
        with torch.no_grad():
            up, down = (top.run({site: weights + sign * step}).logits[0, 0, 0] for sign in (1, -1))
    assert float((ours * step).sum() * 2) == pytest.approx(float(up - down), rel=1e-2)
    assert not ours[:, :, 1:].any()  # the last layer's other rows are read by nothing


def test_a_site_that_is_not_there_is_refused():
    question = ask("sequence classification")
    with pytest.raises(UsageError, match="does not have all of the sites"):
        find_upper_blocks(question, (Site("decoder", 9, 1),))


def test_dropout_stays_off():
    subject = small("Bert", "ForSequenceClassification", **tiny.BERT_SHAPE)
    subject.model.train()
    (question,) = subject.ask(["a cat sat"])
    top = find_upper_blocks(question, subject.sites[-1:])
    with torch.no_grad(), evaluation_mode(subject.model):
        assert torch.allclose(top.run({}).logits, top.logits, atol=1e-5)
    assert all(m.training for m in subject.model.modules() if isinstance(m, nn.Dropout))
