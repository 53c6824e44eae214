"""Objectives in the training of recurrent models: what they move, zero weights, stopped work."""

import pytest
import torch
from learners import TEXTS
from objectives.test_contract import along_a_direction

import attlas
from attlas.models.recurrent.fitting import label_loss
from attlas.models.recurrent.learning import labelled_table
from attlas.objectives import OBJECTIVES
from attlas.objectives.support.objective import Aim
from attlas.training.aiming import aimed_loss

# The word that decides stands at the same place in all texts.
MARKED = [attlas.Example(text, label, ((13, 17),)) for text, label in TEXTS]
QUICK = {"dev": TEXTS, "epochs": 3, "vector_size": 8, "rate": 0.02, "rows": 8, "device": "cpu"}
DEFINED = ("rationale", "conicity", "deception", "masked")


def trained(objectives=None, model="bilstm", **given):
    return attlas.train(model, MARKED, objectives=objectives, **{**QUICK, **given}).subject


def weights(subject):
    return subject.model.state_dict()


def same(one, other):
    return all(torch.equal(each, other[name]) for name, each in one.items())


@pytest.mark.parametrize("model", ["bilstm", "flat"])  # the second with dropout
def test_with_a_weight_of_zero_it_is_training_without_it_to_the_bit(model):
    plain = weights(trained(model=model))
    for name in OBJECTIVES.names():
        assert same(plain, weights(trained(f"{name}:weight=0", model))), name
    assert not same(plain, weights(trained("conicity:weight=0.5", model)))


def on_marked(subject):
    """How much of its attention lies on the marked words, a mean over texts."""
    found = [attlas.explain(subject, text, "raw_attention") for text, _ in TEXTS]
    return sum(float(each.scores[4]) for each in found) / len(found)  # <s> the film was WORD


@pytest.mark.parametrize("model", ["bilstm", "average"])
def test_attention_goes_to_the_marked_words_or_keeps_off_them(model):
    told = attlas.explain(trained(model=model), TEXTS[0][0], "raw_attention")
    assert told.tokens.texts[4] == "fine"
    plain, taught, hidden = (
        on_marked(trained(each, model, epochs=12))
        for each in (None, "rationale:weight=2", "deception:weight=2")
    )
    assert hidden < plain < taught


@pytest.mark.parametrize("name", DEFINED)
@pytest.mark.parametrize("model", ["bilstm", "orthogonal_lstm"])
def test_its_gradient_is_that_of_finite_differences(name, model):
    subject = trained(model=model, epochs=1)
    own, tokenizer = subject.model.double().train(), subject.tokenizer
    own.vectors.padding_idx = None  # masked words have this vector, which gets no gradient else
    spans = {each.text: each.spans for each in MARKED}
    batch = labelled_table(own, tokenizer, TEXTS, spans).batch(range(6))
    loss = aimed_loss(label_loss(), (Aim(name, 0.5),), tokenizer)

    def value():
        torch.manual_seed(3)
        return loss(own, batch)

    slope, expected = along_a_direction(own, value)
    assert slope == pytest.approx(expected, rel=1e-6, abs=1e-9) and abs(slope) > 1e-6


def test_a_stopped_training_goes_on_to_the_same_weights(tmp_path):
    aims = ["rationale:weight=0.5", "masked:weight=0.2"]
    whole = weights(trained(aims, out=tmp_path / "whole"))

    class Stop(BaseException):
        pass

    def stop(step):
        if step.done > step.total // 2:
            raise Stop

    with pytest.raises(Stop):
        trained(aims, out=tmp_path / "cut", watch=stop)
    begun = []
    again = trained(aims, out=tmp_path / "cut", watch=lambda step: begun.append(step.done))
    assert min(begun) > 0, "it began anew"
    assert same(whole, weights(again))
    assert same(whole, weights(attlas.load(tmp_path / "cut", device="cpu")))
