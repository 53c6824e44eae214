"""Verbs: arguments that are not known, and signs of life from Python."""

import sys
from inspect import signature
from time import monotonic, sleep

import pytest

import attlas
from attlas import progress
from attlas.errors import UnknownNameError
from attlas.scoring import score
from attlas.verbs import verb


@pytest.mark.parametrize(
    ("name", "given", "nearest"),
    [
        ("audit", {"quik": True}, "quick"),
        ("triggers", {"candidats": 3}, "candidates"),
        ("prune_curve", {"step": 3}, "steps"),
        ("judge", {"measure": ["location"]}, "measures"),
        ("explain_generation", {"max_tokens": 3}, "max_new_tokens"),
        ("explain", {"licens": True}, "licence"),
        ("explain", {"stepps": True, "method": "integrated_gradients"}, "steps"),
        ("attribution_tree", {"taw": 0.4}, "tau"),
    ],
)
def test_an_unknown_argument_names_the_nearest(name, given, nearest):
    subject = attlas.load("dates" if name == "explain_generation" else "sentiment")
    with pytest.raises(UnknownNameError, match=f"did you mean '{nearest}'"):
        getattr(attlas, name)(subject, "a good film", **given)


@pytest.mark.parametrize(
    "function",
    [attlas.audit, attlas.head_importance, attlas.triggers, score, attlas.try_trial],
    ids=lambda each: each.__name__,
)
def test_a_verb_that_takes_long_shows_itself(function):
    assert "watch" in signature(function).parameters
    assert function.__wrapped__.__name__ == function.__name__


def test_a_verb_is_watched_by_standard_error_unless_somebody_does(monkeypatch, capsys):
    monkeypatch.setattr(progress, "FIRST", 0.01)

    @verb("counting")
    def count(*, seconds, watch=lambda step: None):
        """Work until there is a sign of it, or for so many seconds."""
        watch(progress.Step("three", 1, 2))
        end = monotonic() + seconds
        while not sys.stderr.getvalue() and monotonic() < end:
            sleep(0.01)

    count(seconds=0.3, watch=lambda step: None)
    assert capsys.readouterr().err == ""
    count(seconds=30)
    assert capsys.readouterr().err.startswith("attlas: counting 50% ")


def test_an_unknown_name_of_another_kind_is_told_as_it_is():
    with pytest.raises(UnknownNameError, match="unknown method 'gradiant': did you mean 'grad"):
        attlas.explain(attlas.load(), "a good film", "gradiant")
