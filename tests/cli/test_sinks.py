"""A first token that holds most of the score: said by the verbs, left out if asked for."""

import json

import pytest
import torch
from subjects import subject

import attlas
from attlas.methods import METHODS, Method, Scored

TEXT = "a cat sat"
TOLD = "holds 75% of the score, as an attention sink does"


@pytest.fixture(autouse=True)
def leaning(monkeypatch):
    """A method that gives the first token three times what it gives all others together."""

    def score(question):
        scores = torch.ones(len(question), len(question.inputs.tokens[0]))
        scores[:, 0] = 3 * (scores.shape[1] - 1)
        return Scored(scores)

    method = Method("leaning", score, "W", False, None, "", "It leans.")
    monkeypatch.setitem(METHODS._parts, "leaning", method)


@pytest.mark.parametrize("task", ["sequence classification", "causal lm"])
def test_explain_tells_of_a_sink(task):
    found = attlas.explain(subject(task), TEXT, "leaning")
    (note,) = [each for each in found.notes if "sink" in each]
    assert TOLD in note and repr(found.tokens[0]) in note and "without_sinks()" in note


def test_explain_tells_of_none_where_there_is_none():
    found = attlas.explain(subject("sequence classification"), TEXT, "random_scores")
    assert not any("sink" in each for each in found.notes)


def test_explain_generation_tells_of_a_sink():
    found = attlas.explain_generation(subject("causal lm"), TEXT, "leaning", max_new_tokens=3)
    (note,) = [each for each in found.notes if "sink" in each]
    assert TOLD in note and repr(found.tokens[0]) in note


def explained(run, *flags):
    status, out, _ = run("explain", "--method", "leaning", "--json", *flags, TEXT)
    assert status == 0
    return json.loads(out)


def test_the_command_line_leaves_it_out_if_asked_to(run):
    whole, rest = explained(run), explained(run, "--without-sinks")
    assert whole["scores"][0] > 0 and rest["scores"] == [0, *whole["scores"][1:]]
    assert rest["notes"][-1].startswith("Left out as an attention sink")


def test_and_from_all_that_a_model_writes(run, tmp_path):
    model = subject("causal lm")
    model.model.save_pretrained(tmp_path)
    model.tokenizer.save_pretrained(tmp_path)
    flags = ("--model", tmp_path, "--generate", 2)
    whole, rest = explained(run, *flags), explained(run, *flags, "--without-sinks")
    assert all(row[0] > 0 for row in whole["scores"])
    assert rest["scores"] == [[0, *row[1:]] for row in whole["scores"]]
