"""What every trial owes: figures for each text, plots that can be drawn, the same again by the
same seed, and a model that is left as it was found."""

import json
from functools import cache

import numpy as np
import pytest
import torch
from part_folders import check_files

import attlas
from attlas.data.example import Example
from attlas.errors import UnknownNameError, UsageError
from attlas.models.asking import filling
from attlas.results.support.plots import check_plot
from attlas.trials import COSTS, NEEDS, TRIALS, Scope

TEXTS = (
    "a great and moving film",
    "a dull , lifeless film",
    "I loved every minute of this wonderful film .",
    "the plot is thin and the acting is bad",
    "not good",
    "one of the best movies of the year , and the worst ending",
)
NUMBERS = range(len(TEXTS))
# Of what takes many steps, few: what is asked is not how precise a trial is.
FEW = {"steps": 8, "epochs": 2, "lambdas": (0.1, 1.0), "candidates": 2, "repeats": 10, "probes": 2}
LABELS = ("POSITIVE", "NEGATIVE") * 3
LEARNING = {  # what a trial that needs training data is given
    "training": [Example(text, label) for text, label in zip(TEXTS, LABELS, strict=True)],
    "gold": {number: number % 2 for number in NUMBERS},
    "shares": (0.5,),
    "methods": ("raw_attention",),
}
each_trial = pytest.mark.parametrize("name", TRIALS.names())


@cache
def sentiment():
    return attlas.load("sentiment", device="cpu")


def run(name, ask=lambda: sentiment().ask(list(TEXTS))):
    few = {option: FEW[option] for option in TRIALS[name].options if option in FEW}
    given = LEARNING if "training data" in TRIALS[name].needs else {}
    return TRIALS[name].run(ask(), Scope(), seed=4, **few, **given)


first = cache(run)


def weights():
    model = sentiment().model
    state = {name: value.clone() for name, value in model.state_dict().items()}
    flags = {name: value.requires_grad for name, value in model.named_parameters()}
    return state, flags, [module.training for module in model.modules()]


def test_every_trial_has_its_file_its_test_and_its_page():
    check_files(TRIALS)


@each_trial
def test_what_its_reader_must_know_is_there(name):
    record = TRIALS[name]
    assert record.cost in COSTS and set(record.needs) <= set(NEEDS)
    assert record.paper and record.summary.endswith(".")
    assert record.reading[-1] in ".?" and record.does_not_show.endswith(".")
    assert "seed" in record.options


@each_trial
def test_what_cannot_be_run_is_refused_in_one_line(name):
    with pytest.raises(UsageError, match=f"^{name} needs at least one text, and there is none$"):
        TRIALS[name].run([])
    with pytest.raises(UnknownNameError, match=f"unknown option of {name} 'sede'.*'seed'"):
        TRIALS[name].run(sentiment().ask(TEXTS[:1]), sede=1)
    with pytest.raises(UsageError, match=f"^seed of {name} is int, not 'one'$"):
        TRIALS[name].run(sentiment().ask(TEXTS[:1]), seed="one")


@each_trial
def test_it_leaves_the_model_as_it_was(name):
    sentiment().sites  # noqa: B018  the model is looked at once, before it is compared
    state, flags, training = weights()
    said = sentiment().predict(list(TEXTS))
    first(name)
    after, flags_after, training_after = weights()
    assert after.keys() == state.keys() and flags_after == flags and training_after == training
    assert all(torch.equal(after[key], state[key]) for key in state)
    assert sentiment().predict(list(TEXTS)).equals(said)


@each_trial
def test_figures_are_of_each_text(name):
    """Of each but those that were trained on."""
    tried = first(name)
    count = len(tried.texts)
    assert len(set(tried.texts)) == count >= len(TEXTS) // 2 and set(tried.texts) <= set(NUMBERS)
    assert tried.figures
    for figure, values in tried.figures.items():
        assert figure.strip() and values.shape == (count,) and values.dtype == np.float64
        assert not np.isinf(values).any(), figure
    assert any(np.isfinite(values).any() for values in tried.figures.values())
    for figure, most in tried.ceilings.items():
        assert figure in tried.figures
        known = np.isfinite(tried.figures[figure]) & np.isfinite(most)
        assert np.shape(most) in ((), (count,))
        top = np.broadcast_to(most, count)
        assert (tried.figures[figure][known] <= top[known] + 1e-6).all(), figure


@each_trial
def test_what_it_found_is_told_and_drawn(name):
    tried = first(name)
    assert tried.sentence[0].isupper() and tried.sentence.endswith(".")
    assert "nan" not in tried.sentence.lower().split()
    assert all(isinstance(note, str) and note for note in tried.notes)
    assert tried.plots
    for plot in tried.plots:
        check_plot(plot)
        json.dumps(plot, allow_nan=False)
    json.dumps(tried.details, allow_nan=False)


@each_trial
def test_the_same_seed_finds_the_same(name):
    one, again = first(name), run(name)
    assert one.texts == again.texts and one.sentence == again.sentence
    assert one.figures.keys() == again.figures.keys()
    for figure, values in one.figures.items():
        np.testing.assert_array_equal(values, again.figures[figure], err_msg=figure)
    assert json.dumps(one.plots) == json.dumps(again.plots)


@pytest.mark.parametrize("name", [name for name in TRIALS.names() if TRIALS[name].fills])
def test_it_finds_the_same_where_texts_of_several_lengths_share_a_batch(name, monkeypatch):
    monkeypatch.setattr(filling, "NEAR", {"cpu": 64})
    together = filling.fill(sentiment().ask(list(TEXTS)))
    assert len(together) == 1
    tried, expected = run(name, lambda: together), first(name)
    assert tried.figures.keys() == expected.figures.keys()
    order = [tried.texts.index(text) for text in expected.texts]
    for figure, values in expected.figures.items():
        np.testing.assert_allclose(tried.figures[figure][order], values, rtol=1e-4, atol=1e-5)
