"""`check` says yes for models that are opened exactly, and no when anything is off by a bit."""

import dataclasses
import inspect

import pytest
import tiny
import torch
from subjects import REFUSES, TEXTS, subject, takes

import attlas
from attlas import checking
from attlas.errors import UsageError
from attlas.methods import METHODS
from attlas.models.facts.places import embedded_names


def refusing(found):
    """The methods that say why they cannot run."""
    assert set(found.methods) == set(METHODS.names())
    return {name for name, reason in found.methods.items() if reason}


@pytest.mark.parametrize("task", TEXTS)
def test_every_kind_of_model_passes_with_every_method(task):
    found = attlas.check(subject(task))
    assert found.passed and found.differentiable
    assert found.branches == "" and not found.second_road
    assert refusing(found) == {name for name in METHODS.names() if not takes(name, task)}
    assert len(found.sites) == len(subject(task).sites)


def test_a_model_without_a_head_is_opened_and_methods_say_why_not():
    whole = subject("sequence classification")
    bare = attlas.Subject(whole.model.bert, whole.tokenizer)
    found = attlas.check(bare)
    assert found.passed
    assert all("no head" in reason for reason in found.methods.values())


def test_the_second_road_is_said():
    tokenizer = tiny.tokenizer("wordpiece")
    model = tiny.SECOND_ROAD["mpnet"]().model
    model.resize_token_embeddings(len(tokenizer))
    found = attlas.check(attlas.Subject(model, tokenizer))
    assert found.passed and found.second_road and found.branches == ""
    assert refusing(found) == set()


def test_a_method_that_breaks_is_a_line_of_its_own(monkeypatch):
    def breaks(question):
        raise IndexError("list index out of range\nin the second line")

    broken = dataclasses.replace(METHODS["gradient"], score_tokens=breaks)
    monkeypatch.setitem(METHODS._parts, "gradient", broken)
    found = attlas.check(subject("sequence classification"))
    assert found.methods["gradient"] == "IndexError: list index out of range"
    assert refusing(found) == {"gradient"}


@pytest.mark.parametrize("which", ["exact", "restored", "editable"])
def test_one_bit_is_enough_to_fail(which, monkeypatch):
    order = ["before", "eager", "exact", "editable", "restored"]
    run, calls = checking._run, []

    def one_bit_off(*arguments):
        calls.append(None)
        output = run(*arguments)
        if order[len(calls) - 1] == which:
            output.view(torch.int32).view(-1)[0] ^= 1
        return output

    monkeypatch.setattr(checking, "_run", one_bit_off)
    found = attlas.check(subject("sequence classification"))
    assert not found.passed and not getattr(found, which)


def test_the_distance_of_the_backend_is_measured():
    found = attlas.check(subject("sequence classification"))
    assert found.backend == "sdpa"
    assert 0 <= found.distance < 1e-4
    assert found.to_dict()["sites"] == ["encoder.0", "encoder.1"]


@pytest.mark.parametrize("name", embedded_names())
def test_every_model_in_the_box_is_opened_exactly(name):
    asked = attlas.load(name)
    found = attlas.check(asked)
    assert found.passed and found.differentiable
    assert refusing(found) == (set(REFUSES) if asked.has_decoder else set())


def test_only_a_subject_is_checked():
    with pytest.raises(UsageError, match=r"check takes a Subject \(attlas\.load\), not str"):
        inspect.unwrap(attlas.check)("sentiment")
