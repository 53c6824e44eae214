"""The model used plainly in another thread, while it is explained: neither disturbs the other."""

import threading

import numpy as np
import pytest
import torch
from subjects import few, subject

import attlas
from attlas.methods import METHODS
from attlas.models.branching.upper_blocks import find_upper_blocks

TEXT, OTHER = "the film was not good", "a cat sat"


@pytest.fixture(scope="module")
def own():
    return subject("sequence classification")


def plainly(model, given):
    with torch.no_grad():
        return model(**given).logits


class Visitor:
    """Uses the model in another thread, in the middle of each of the first calls of each block."""

    def __init__(self, model, given, most=4):
        self.model, self.given, self.most = model, given, most
        self.found, self.inside = [], threading.local()

    def visit(self, module, *_):
        if threading.current_thread().name != "visitor" and self.most:
            self.most -= 1
            thread = threading.Thread(target=self._use, name="visitor")
            thread.start()
            thread.join()

    def _use(self):
        try:
            self.found.append(plainly(self.model, self.given))
        except Exception as problem:
            self.found.append(problem)

    def __enter__(self):
        places = [*self.model.bert.encoder.layer, self.model.bert.embeddings]
        self.handles = [each.register_forward_hook(self.visit) for each in places]
        return self

    def __exit__(self, *_):
        for handle in self.handles:
            handle.remove()


def explained(own, method):
    return attlas.explain(own, TEXT, method, maps=False, **few(method)).scores


@pytest.mark.parametrize("method", METHODS.names())
def test_an_explanation_and_a_plain_call_do_not_meet(method, own):
    given = dict(own.tokenizer(OTHER, return_tensors="pt"))
    alone, expected = explained(own, method), plainly(own.model, given)
    with Visitor(own.model, given) as visitor:
        beside = explained(own, method)
    assert visitor.found
    for each in visitor.found:
        assert isinstance(each, torch.Tensor), repr(each)
        assert torch.equal(each, expected)
    np.testing.assert_array_equal(beside, alone)


def above(own):
    """The output of the last block, with the ones below standing still."""
    (question,) = own.ask([TEXT])
    top = find_upper_blocks(question, own.sites[-1:])
    with torch.no_grad():
        return top.run({}).logits


def sensitivity(own):
    """What nudged vectors do."""
    judged = attlas.judge(own, attlas.explain(own, TEXT, "raw_attention"), "sensitivity")
    return [each.value for each in judged.measured]


WAYS = {
    "attention": lambda own: own.attention(TEXT)["encoder.1"],
    "predict": lambda own: own.predict([TEXT])["probability"].to_numpy(),
    "above": above,
    "sensitivity": sensitivity,
    "tree": lambda own: attlas.attribution_tree(own, TEXT, steps=2).to_dict()["edges"],
}


@pytest.mark.parametrize("way", WAYS)
def test_other_questions_and_a_plain_call_do_not_meet(way, own):
    given = dict(own.tokenizer(OTHER, return_tensors="pt"))
    alone, expected = WAYS[way](own), plainly(own.model, given)
    with Visitor(own.model, given, most=60) as visitor:
        beside = WAYS[way](own)
    assert visitor.found
    for each in visitor.found:
        assert isinstance(each, torch.Tensor), repr(each)
        assert torch.equal(each, expected)
    np.testing.assert_array_equal(beside, alone)
