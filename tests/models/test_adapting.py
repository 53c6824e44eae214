"""A module of anyone's own, opened by naming its attention, in the shapes that people write."""

import runpy
from pathlib import Path

import numpy as np
import pytest
import torch
from tokenizers import Tokenizer, models, pre_tokenizers
from torch import nn
from transformers import PreTrainedTokenizerFast

import attlas
from attlas.errors import NotDefinedError, UnknownNameError, UnsupportedModelError, UsageError

EXAMPLE = Path(__file__).parents[2] / "examples" / "own_model.py"
WORDS = ["<pad>", "<unk>", "a", "fine", "film", "dull"]
TEXT = "a fine dull film"


def tokenizer():
    vocabulary = {word: number for number, word in enumerate(WORDS)}
    own = Tokenizer(models.WordLevel(vocabulary, unk_token="<unk>"))
    own.pre_tokenizer = pre_tokenizers.Whitespace()
    return PreTrainedTokenizerFast(tokenizer_object=own, unk_token="<unk>", pad_token="<pad>")


class Pool(nn.Module):
    """A softmax over the words, in one of the shapes that people write; it returns the weights."""

    def __init__(self, shape):
        super().__init__()
        self.score, self.shape = nn.Linear(4, 1), shape

    def forward(self, states):
        scores = self.score(states)  # [text, word, 1]
        if self.shape == "column":
            return torch.softmax(scores, dim=1)
        if self.shape == "row":
            return nn.functional.softmax(scores.transpose(1, 2), dim=-1).transpose(1, 2)
        return scores.squeeze(-1).softmax(-1)[..., None]


class Own(nn.Module):
    """Words, weighed and added up."""

    def __init__(self, shape="flat", outputs=1):
        super().__init__()
        torch.manual_seed(1)
        self.words, self.pool = nn.Embedding(len(WORDS), 4), Pool(shape)
        self.output = nn.Linear(4, outputs)

    def forward(self, ids, weights=None):
        states = self.words(ids)
        weights = self.pool(states) if weights is None else weights
        return self.output((weights * states).sum(1))


def opened(model=None, **given):
    return attlas.adapt(model or Own(), tokenizer(), "pool", ["bad", "good"], **given)


@pytest.mark.parametrize("shape", ["flat", "column", "row"])
def test_the_attention_is_read_and_rewritten_in_any_shape(shape):
    model = Own(shape)
    subject = opened(model)
    ids = torch.tensor([subject.tokenizer(TEXT)["input_ids"]])
    with torch.no_grad():
        weights, before = model.pool(model.words(ids)), model(ids)
        maps = subject.attention(TEXT)
        assert [site.name for site in maps.sites] == ["pooling.0"]
        np.testing.assert_allclose(maps.weights[0], weights[:, :, 0][:, None], atol=1e-7)
        even = model(ids, torch.full_like(weights, 1 / 4))
        with subject.tap(attlas.edits.uniform()):
            edited = model(ids)
        torch.testing.assert_close(edited, even)
        assert torch.equal(model(ids), before)


class Heads(nn.Module):
    """A GRU whose states three heads pool, each by a softmax of its own."""

    def __init__(self, axis):
        super().__init__()
        torch.manual_seed(2)
        self.words, self.reader = nn.Embedding(len(WORDS), 4), nn.GRU(4, 3, batch_first=True)
        self.pool, self.output = HeadsPool(axis), nn.Linear(9, 2)

    def forward(self, ids, lengths):
        states = self.reader(self.words(ids))[0]
        return self.output((self.pool(states) @ states).flatten(1))


class HeadsPool(nn.Module):
    """Weights `[text, head, word]`; the softmax is along this axis of the scores."""

    def __init__(self, axis):
        super().__init__()
        self.score, self.axis = nn.Linear(3, 3), axis

    def forward(self, states):
        scores = torch.tanh(self.score(states))  # [text, word, head]
        if self.axis == 1:
            return scores.softmax(1).transpose(1, 2)
        if self.axis == -1:
            return scores.transpose(1, 2).softmax(-1)
        return scores.transpose(1, 2)[:, :, None].softmax(3)[:, :, 0]


@pytest.mark.parametrize("axis", [1, -1, 3])
def test_several_heads_that_pool_are_read_and_rewritten(axis):
    model = Heads(axis).eval()
    subject = opened(model, call=lambda model, ids, mask: model(ids, mask.sum(1)))
    ids = torch.tensor([subject.tokenizer(TEXT)["input_ids"]])
    with torch.no_grad():
        states = model.reader(model.words(ids))[0]
        weights, before = model.pool(states), model(ids, None)
        even = model.output(states.mean(1).repeat(1, 3))
        assert subject.sites[0].heads == 3
        np.testing.assert_allclose(subject.attention(TEXT).weights[0][:, 0], weights[0], atol=1e-7)
        with subject.tap(attlas.edits.uniform()):
            torch.testing.assert_close(model(ids, None), even)
    torch.testing.assert_close(model(ids, None), before)
    found = attlas.explain(subject, TEXT, "raw_attention")
    np.testing.assert_allclose(found.scores, weights[0].mean(0), atol=1e-7)
    slope = torch.autograd.functional.jacobian(
        lambda each: model.output((each @ states).flatten(1))[0, 1], weights
    )
    product = attlas.explain(subject, TEXT, "gradient_attention", target="good")
    np.testing.assert_allclose(product.scores, (slope * weights)[0].mean(0), atol=1e-6)


def test_one_number_stands_for_two_labels():
    model = Own()
    subject = opened(model)
    number = model(torch.tensor([subject.tokenizer(TEXT)["input_ids"]])).item()
    sure = subject.predict([TEXT]).iloc[0]
    chance = 1 / (1 + np.exp(-number))
    assert sure["label"] == ("good" if chance > 0.5 else "bad")
    assert sure["probability"] == pytest.approx(max(chance, 1 - chance), abs=1e-6)


def test_methods_and_trials_run_or_say_why_not():
    subject = opened()
    scores = attlas.explain(subject, TEXT, "input_x_gradient", target="good").scores
    vectors = subject.model.get_input_embeddings()
    ids = torch.tensor([subject.tokenizer(TEXT)["input_ids"]])
    leaf = vectors(ids).detach().requires_grad_()
    inner = subject.model.whole[0].inner
    inner.output((inner.pool(leaf) * leaf).sum(1)).sum().backward()
    np.testing.assert_allclose(scores, (leaf * leaf.grad).sum(-1)[0].detach() / 2, atol=1e-6)
    with pytest.raises(NotDefinedError, match="pools its tokens"):
        attlas.explain(subject, TEXT, "attention_rollout")
    result = attlas.try_trial(subject, [(TEXT, "good"), ("a dull film", "bad")], "erasure")
    assert result.figures


def test_a_call_of_ones_own():
    model = Own(outputs=3)
    subject = attlas.adapt(
        model,
        tokenizer(),
        "pool",
        ["x", "y", "z"],
        call=lambda own, ids, mask: own(ids) * mask[0, 0],
    )
    assert subject.labels == ["x", "y", "z"]
    assert subject.predict([TEXT]).iloc[0]["label"] in subject.labels


def test_the_model_stays_as_it_was():
    model = Own().train()
    hooks = [len(each._forward_hooks) for each in model.modules()]
    opened(model).attention(TEXT)
    assert model.training and hooks == [len(each._forward_hooks) for each in model.modules()]
    assert all(each.requires_grad for each in model.parameters())


def test_mistakes_are_told():
    with pytest.raises(UnknownNameError, match="pool"):
        attlas.adapt(Own(), tokenizer(), "pol", ["bad", "good"])
    with pytest.raises(UnknownNameError, match="pooling"):
        opened(kind="poling")
    with pytest.raises(UsageError, match="1 logits, and there are 3 labels"):
        attlas.adapt(Own(), tokenizer(), "pool", ["a", "b", "c"]).predict([TEXT])
    with pytest.raises(UsageError, match="the tokenizer is one of transformers, not NoneType"):
        attlas.adapt(Own(), None, "pool", ["bad", "good"])
    model = Own()
    wrong = attlas.adapt(model, tokenizer(), "words", ["bad", "good"])
    with pytest.raises(
        UnsupportedModelError, match=r"^words takes no softmax over the tokens: name"
    ):
        wrong.predict([TEXT])
    assert attlas.explain(opened(model), TEXT, "raw_attention").scores.sum() == pytest.approx(1)
    two = Own()
    two.more = nn.Embedding(2, 2)
    with pytest.raises(UsageError, match="2 embeddings"):
        opened(two)
    assert opened(two, vectors="words").model.get_input_embeddings() is two.words


def test_the_example_runs(capsys):
    runpy.run_path(str(EXAMPLE), run_name="__main__")
    told = capsys.readouterr().out
    assert "pooling" in told and "with even attention" in told and "permutation" in told
