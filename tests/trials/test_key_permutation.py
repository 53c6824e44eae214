"""Exchanged keys, against a model whose key vectors are exchanged in fact."""

import numpy as np
import pytest
import tiny
import torch
from subjects import TEXTS, arguments, ask, plain, small, subject

from attlas.errors import UnsupportedModelError, UsageError
from attlas.models.intervening.keys import exchanges_columns
from attlas.trials import Scope
from attlas.trials.key_permutation import key_permutation
from attlas.trials.rewriting.rewritings import shuffle_keys
from attlas.trials.rewriting.rewritten_answers import RewritingPlan

TASK = "sequence classification"


def key_order(question, site, number, content):
    """The order that a variant puts the keys in, found by what it does to weights of one to n."""
    length = len(question.inputs.tokens[0])
    weights = torch.arange(float(length)).expand(1, 1, 1, 1, length)
    free = torch.tensor(content)[None, None, None]
    plan = RewritingPlan("key_permutation", shuffle_keys, 20, 0)
    return shuffle_keys(weights, free, plan.draws(question, site, [number])).flatten().long()


@pytest.mark.parametrize("layer", [0, 1])
def test_the_answer_is_that_of_the_model_with_its_key_vectors_exchanged(layer):
    (question,) = subject(TASK).ask(TEXTS[TASK][:1])
    scope = Scope("layer", layer)
    (site,) = scope.sites(subject(TASK))
    tried = key_permutation([question], scope, repeats=6)
    model, given = plain(TASK), arguments(TASK, TEXTS[TASK][0])
    content = [not each for each in question.inputs.tokens[0].special]
    with torch.no_grad():
        own = model(**given).logits[0].softmax(-1)
    moved = []
    for number in range(6):
        order = key_order(question, site, number, content)
        assert sorted(order.tolist()) == list(range(len(content)))
        key = model.bert.encoder.layer[layer].attention.self.key
        handle = key.register_forward_hook(lambda _m, _a, out, order=order: out[:, order])
        with torch.no_grad():
            moved.append((model(**given).logits[0].softmax(-1) - own).abs().sum().item() / 2)
        handle.remove()
    assert tried.figures["difference"][0] == pytest.approx(np.mean(moved), abs=1e-5)
    assert tried.figures["median difference"][0] == pytest.approx(np.median(moved), abs=1e-5)
    assert np.mean(moved) > 1e-3


def test_keys_and_values_exchanged_together_would_change_nothing():
    model, given = plain(TASK), arguments(TASK, TEXTS[TASK][0])
    length = given["input_ids"].shape[1]
    order = torch.randperm(length, generator=torch.Generator().manual_seed(0))
    own = model.bert.encoder.layer[-1].attention.self
    with torch.no_grad():
        before = model(**given).logits
        handles = [
            each.register_forward_hook(lambda _m, _a, out: out[:, order])
            for each in (own.key, own.value)
        ]
        after = model(**given).logits
        for handle in handles:
            handle.remove()
    assert torch.allclose(before, after, atol=1e-5)


def test_a_bias_of_position_is_found():
    t5 = ask("sequence to sequence")
    found = exchanges_columns(t5.subject, t5.inputs)
    assert found == {
        **{f"encoder.{n}": False for n in (0, 1)},
        **{f"decoder.{n}": False for n in (0, 1)},
        **{f"cross.{n}": True for n in (0, 1)},
    }
    for task in ("sequence classification", "causal lm", "image classification"):
        question = ask(task)
        assert all(exchanges_columns(question.subject, question.inputs).values())
    rotary = small("Llama", "ForCausalLM", "bpe", **tiny.LLAMA_SHAPE)
    (question,) = rotary.ask(["the film was not good"])
    assert all(exchanges_columns(rotary, question.inputs).values())


def test_models_whose_keys_would_do_something_else_are_refused():
    with pytest.raises(UnsupportedModelError, match="position bias"):
        key_permutation([ask("sequence to sequence")], Scope("all"))
    mpnet = small("MPNet", "ForSequenceClassification", **tiny.BERT_SHAPE)
    with pytest.raises(UnsupportedModelError, match="cannot be read"):
        key_permutation(mpnet.ask(["a cat sat"]))
    with pytest.raises(UsageError, match="at least 1"):
        key_permutation([ask(TASK)], repeats=0)


def test_cross_attention_has_no_bias_and_is_tried():
    tried = key_permutation([ask("sequence to sequence")], repeats=3)
    assert tried.figures["difference"][0] > 0
