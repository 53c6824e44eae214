"""Parts of a trial that were kept: the outcome is the same, and nothing is asked twice."""

import json

import numpy as np
import pytest
from subjects import subject

from attlas.data.example import Example
from attlas.keeping import keeping, kept
from attlas.results.support.files import plain
from attlas.trials import TRIALS, Scope

TASK = "sequence classification"
TEXTS = ("a great film", "a dull film", "not good at all", "the plot is thin", "good", "I loved it")
FEW = {"steps": 3, "epochs": 1, "lambdas": (0.1,), "candidates": 2, "repeats": 3, "probes": 2}
FEW |= {"rounds": 2, "draws": 2}
WHOLE = {  # trained, or a pass or two of the model over all texts: these begin again
    "adversarial_keys", "head_patterns", "identifiability",
}  # fmt: skip


class Notebook:
    """Keeps all parts, and counts those that are computed."""

    def __init__(self, stop_after=None):
        self.known, self.computed, self.stop_after = {}, [], stop_after

    def keep(self, name, compute):
        if name not in self.known:
            if len(self.computed) == self.stop_after:
                raise KeyboardInterrupt
            self.computed.append(name)
            self.known[name] = compute()
        return self.known[name]


def run(name):
    model = subject(TASK)
    few = {option: FEW[option] for option in TRIALS[name].options if option in FEW}
    if "training data" in TRIALS[name].needs:
        labels = [model.labels[number % 2] for number in range(len(TEXTS))]
        few["training"] = [Example(*each) for each in zip(TEXTS, labels, strict=True)]
        few["gold"] = {number: number % 2 for number in range(len(TEXTS))}
        few |= {"shares": (0.3, 0.6), "methods": ("raw_attention",)}
    return TRIALS[name].run(model.ask(list(TEXTS)), Scope(), seed=4, **few)


@pytest.mark.parametrize("name", TRIALS.names())
def test_a_stopped_trial_goes_on_and_finds_the_same(name):
    unbroken = run(name)
    notes = Notebook(stop_after=1)
    if name in WHOLE:
        with keeping(notes.keep):
            run(name)
        assert not notes.computed
        return
    with keeping(notes.keep), pytest.raises(KeyboardInterrupt):
        run(name)
    notes.stop_after = None
    with keeping(notes.keep):
        resumed = run(name)
    assert len(notes.computed) == len(set(notes.computed)) > 1
    assert resumed.figures.keys() == unbroken.figures.keys()
    for figure, values in unbroken.figures.items():
        np.testing.assert_array_equal(resumed.figures[figure], values)
    said = [json.dumps(plain([o.sentence, o.plots, o.ceilings])) for o in (resumed, unbroken)]
    assert said[0] == said[1]


def test_a_retrained_copy_whose_answers_are_known_is_not_trained_again(monkeypatch):
    from attlas.trials.relearning import curves

    trained, train, notes = [], curves.train, Notebook()
    monkeypatch.setattr(curves, "train", lambda *given: (trained.append(1), train(*given)))
    with keeping(notes.keep):
        run("remove_and_retrain")
    assert trained
    trained.clear()
    with keeping(notes.keep):
        run("remove_and_retrain")
    assert not trained


def test_without_a_keeper_a_part_is_computed():
    assert [each.tolist() for each in kept("a part", lambda: [[1, 2], [True]])] == [[1, 2], [1]]
