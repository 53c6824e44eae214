"""A target for each text, either of several targets, a position by word, texts in arrays."""

import numpy as np
import pandas as pd
import pytest
import torch
from subjects import subject

import attlas
from attlas.errors import UsageError
from attlas.models.encoding.request import Request
from attlas.models.relevance.passes import attention_relevance

TEXTS = ["the cat sat", "a film", "the dog sat", "the film was not good"]


def explain(text, task="sequence classification", method="gradient_attention", **asked):
    return attlas.explain(subject(task), text, method, **asked)


@pytest.mark.parametrize("kind", [list, np.array, pd.Series])
def test_a_target_for_each_text(kind):
    labels = subject("sequence classification").labels
    targets = [0, 1, labels[0], labels[1]]
    found = explain(kind(TEXTS), target=targets)
    for text, target, each in zip(TEXTS, targets, found, strict=True):
        alone = explain(text, target=target)
        np.testing.assert_allclose(each.scores, alone.scores, rtol=1e-4, atol=1e-6)
        assert each.target.name == alone.target.name
        assert each.origin.asked["target"] == target


def test_a_number_for_each_text_from_an_array():
    found = explain(TEXTS[:2], target=np.array([1, 0]), contrast=pd.Series([0, 1]))
    labels = subject("sequence classification").labels
    assert [each.target.name for each in found] == [labels[1], labels[0]]
    assert [each.target.contrast for each in found] == [labels[0], labels[1]]
    assert found[0].origin.asked["target"] == 1


def test_as_many_targets_as_texts():
    with pytest.raises(UsageError, match="4 texts but 2 in target: give one for each"):
        explain(TEXTS, target=[0, 1])


def test_targets_of_several_tokens_and_lengths():
    found = explain(TEXTS[:2], "causal lm", target=[" the", " the not"])
    assert [each.target.name for each in found] == [" the", " the not"]


METHODS = ["decompx", "leave_one_out", "input_x_gradient"]


@pytest.mark.parametrize("method", METHODS)
def test_either_of_several_tokens_against_others(method):
    """Methods that are linear in the logits give the mean difference of the single tokens."""
    asked = {"target": [" the", " and"], "contrast": [" was", " is"]}
    found = explain("the dog sat on", "causal lm", method, **asked)
    assert (found.target.name, found.target.contrast) == (" the or  and", " was or  is")
    single = {
        token: explain("the dog sat on", "causal lm", method, target=token).scores
        for token in (" the", " and", " was", " is")
    }
    share = 1.0 if method == "leave_one_out" else 0.5  # it asks for probabilities, which add up
    expected = share * (single[" the"] + single[" and"] - single[" was"] - single[" is"])
    np.testing.assert_allclose(found.scores, expected, rtol=1e-3, atol=1e-5)


def test_relevance_starts_half_at_each_of_two_tokens():
    model = subject("causal lm")

    def arrived(target):
        (question,) = model.ask(["the dog sat on"], Request(target))
        return attention_relevance(question, model.sites).attention

    both, one, other = arrived([" the", " and"]), arrived(" the"), arrived(" and")
    for found, first, second in zip(both, one, other, strict=True):
        torch.testing.assert_close(found, (first + second) / 2, rtol=1e-3, atol=1e-4)


def test_either_of_several_labels():
    labels = subject("token classification").labels
    found = explain("the cat sat", "token classification", target=labels[:2], position="cat")
    assert found.target.name == f"{labels[0]} or {labels[1]}"
    assert found.tokens[found.target.position].startswith("c")
    with pytest.raises(UsageError, match="holds at least one"):
        explain("the cat sat", target=[])


def test_several_targets_are_not_judged():
    found = explain("the dog sat on", "causal lm", target=[" the", " and"])
    judged = attlas.judge(subject("causal lm"), found, ["comprehensiveness"], shuffles=1)
    assert judged.to_pandas()["note"].str.contains("are several targets").all()


def test_attention_with_a_prefix_and_cut():
    writes = subject("sequence to sequence")
    assert "film" in "".join(writes.attention("the cat", prefix=" the film").tokens[-4:])
    reads = subject("sequence classification")
    assert len(reads.attention("a " * 999, truncate=True).tokens) == reads.max_tokens
