"""A trial by itself: every trial runs on a small model, and its result shows itself."""

import io
import json

import jaxtyping
import numpy as np
import pytest
from rich.console import Console
from subjects import subject

import attlas
from attlas.data.example import Example
from attlas.errors import UnknownNameError, UsageError
from attlas.results import TrialResult
from attlas.trials import TRIALS, Scope

TASK = "sequence classification"
TEXTS = ["the film was good", "the film was bad", "a good film", "not a bad film"]
LONG = "film " * 600
FEW = {"steps": 2, "epochs": 1, "lambdas": (0.1,), "candidates": 2, "repeats": 3, "probes": 2}


LEARNED = [("a great film", "POSITIVE"), ("a poor film", "NEGATIVE"), ("fine", "NEUTRAL")]


def few(name):
    """Options that keep a trial short, and examples if it has to be trained."""
    learning = {"training": LEARNED, "shares": (0.5,), "methods": ["raw_attention"]}
    given = learning if "training data" in TRIALS[name].needs else {}
    return {**{option: FEW[option] for option in TRIALS[name].options if option in FEW}, **given}


@pytest.fixture
def unchecked(monkeypatch):
    """Calls as users make them, without the type checks of the test run."""
    monkeypatch.setattr(jaxtyping.config, "jaxtyping_disable", True)


@pytest.mark.parametrize("name", TRIALS.names())
def test_every_trial_runs_by_itself_and_shows_what_it_found(name, tmp_path):
    data = [(text, number % 3) for number, text in enumerate(TEXTS)]
    result = attlas.try_trial(subject(TASK), data, name, **few(name))
    assert (result.name, result.texts) == (name, 4)
    assert result.sentence and result.figures and result.plots and result.scope
    stream = io.StringIO()
    Console(file=stream, width=100).print(result)
    assert result.figures[0].name in stream.getvalue()
    assert result.figures[0].name in result._repr_html_()
    assert TRIALS[name].reading[:20] in result.to_html(tmp_path / "page.html").read_text("utf-8")
    loaded = TrialResult.load(result.save(tmp_path / "trial"))
    assert loaded.to_dict() == result.to_dict()
    json.dumps(result.to_dict(), allow_nan=False)


def test_figures_are_those_of_the_trial():
    asked = subject(TASK)
    result = attlas.try_trial(asked, TEXTS[:4], "permutation", seed=3, repeats=5)
    outcome = TRIALS["permutation"].run(asked.ask(TEXTS[:4]), seed=3, repeats=5)
    for name, values in outcome.figures.items():
        assert result[name].value == pytest.approx(np.nanmean(values))
        assert result[name].n == 4
    assert list(result.to_pandas()["figure"]) == list(outcome.figures)


def test_labels_of_the_data_give_accuracies():
    asked = subject(TASK)
    labelled = [(text, asked.labels[0].lower()) for text in TEXTS[:4]]
    even = attlas.try_trial(asked, labelled, "uniform")
    assert even["right as it is"].n == 4
    keys = attlas.try_trial(asked, labelled, "adversarial_keys", gold=True, epochs=1)
    assert keys["accuracy"].n == 2


def test_training_examples_are_read_like_any_data():
    asked = subject(TASK)
    training = [Example(text, label) for text, label in zip(TEXTS, 3 * asked.labels, strict=False)]
    options = few("consistent_adversary")
    result = attlas.try_trial(
        asked, TEXTS[:4], "consistent_adversary", training=training, seeds=1, **options
    )
    assert "accuracy" in result.details["retrained"]
    assert "training" not in result.settings


def test_the_scope_is_named_or_given():
    asked = subject(TASK)
    named = attlas.try_trial(asked, TEXTS[:4], "uniform", scope="all")
    given = attlas.try_trial(asked, TEXTS[:4], "uniform", scope=Scope("layer", 0))
    assert named.scope == str(Scope("all")) and given.scope == str(Scope("layer", 0))
    assert "scope=attlas.Scope(kind='layer', layer=0" in given.code()


def test_the_code_runs_the_trial_again():
    result = attlas.try_trial(attlas.load(), "reviews", "uniform", count=6)
    names = {}
    *lines, last = result.code().splitlines()
    exec("\n".join([*lines, f"again = {last}"]), names)
    assert names["again"].to_dict() == result.to_dict()


def test_texts_that_cannot_be_used_are_counted():
    result = attlas.try_trial(subject(TASK), [*TEXTS, LONG], "uniform")
    ((reason, count),) = result.data.left_out.items()
    assert (result.texts, count) == (4, 1) and "tokens" in reason


@pytest.mark.parametrize(
    ("data", "trial", "options", "error", "message"),
    [
        (TEXTS, "permutations", {}, UnknownNameError, "unknown trial 'permutations'"),
        (TEXTS, None, {}, UsageError, "a trial is given by its name, a string, not None"),
        (TEXTS, "uniform", {"repeats": 3}, UnknownNameError, "unknown option of uniform 'repeats'"),
        (TEXTS, "permutation", {"repeats": "x"}, UsageError, "repeats of permutation is int"),
        (TEXTS, "uniform", {"scope": "everywhere"}, UnknownNameError, "unknown scope 'everywhere'"),
        (TEXTS, "uniform", {"scope": 3}, UsageError, "scope is a Scope or the name of its kind"),
        ([LONG], "uniform", {}, UsageError, "a trial needs at least 1 text, and there are 0"),
    ],
)
def test_a_mistake_is_one_clear_line(data, trial, options, error, message, unchecked):
    with pytest.raises(error, match=message):
        attlas.try_trial(subject(TASK), data, trial, **options)


def test_a_model_is_a_subject(unchecked):
    with pytest.raises(UsageError, match="try_trial takes a Subject"):
        attlas.try_trial("sentiment", TEXTS, "uniform")
