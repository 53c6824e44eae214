"""What the trials say of models whose workings are known.

shortcut_deceptive  one word decides, and the rows that the label is read from avoid it: what they
                    attend to instead is not what decides, and any of it may be exchanged
shortcut_token      the same task, learnt without that penalty
recall              the answer is looked up by attention, and only there
"""

from functools import cache

import numpy as np
import pytest

import attlas
from attlas.data.generated import recall, shortcuts
from attlas.trials import TRIALS, Scope, attention_use

TEXTS = 16
DATA = {
    "shortcut_deceptive": lambda: shortcuts.generate(TEXTS, 6, "token", held_out=True),
    "shortcut_token": lambda: shortcuts.generate(TEXTS, 6, "token", held_out=True),
    "recall": lambda: recall.generate(TEXTS, 6),
}


@cache
def questions(name):
    subject = attlas.load(name, device="cpu")
    examples = DATA[name]()
    asked = subject.ask([example.text for example in examples])
    for question in asked:  # the models do what they are known to do
        for number, target, _ in question.answers():
            assert target.name.strip() == examples[number].label
    return asked


@cache
def tried(trial, name, kind="readout"):
    return TRIALS[trial].run(questions(name), Scope(kind), seed=1)


@cache
def mean(trial, name, figure, kind="readout"):
    return float(np.nanmean(tried(trial, name, kind).figures[figure]))


@pytest.mark.parametrize("trial", ["permutation", "uniform"])
def test_the_weights_that_the_deceptive_model_shows_are_idle(trial):
    assert mean(trial, "shortcut_deceptive", "flips") == 0
    assert mean(trial, "shortcut_deceptive", "difference") < 0.01
    # It is not that nothing passes there: without what the attention brings, answers are lost.
    assert mean(trial, "shortcut_deceptive", "difference by its mean") > 0.25


@pytest.mark.parametrize("trial", ["permutation", "uniform"])
def test_its_attention_as_a_whole_is_not(trial):
    assert mean(trial, "shortcut_deceptive", "flips", "all") > 0.9


def test_the_verdict_is_told_that_its_readout_is_not_used_and_the_others_are():
    def of(name):
        return attention_use(tried("permutation", name), tried("uniform", name))

    assert of("shortcut_deceptive").high < 0.1
    assert of("shortcut_token").low > 0.5
    assert of("recall").low > 0.5


def test_erasing_what_it_attends_to_most_turns_nothing():
    assert mean("erasure", "shortcut_deceptive", "largest turns it") == 0
    assert mean("erasure", "shortcut_deceptive", "largest turns it", "all") > 0.9
    # Honest attention is on what decides: there it turns answers, and a random weight turns none.
    assert mean("erasure", "shortcut_token", "largest turns it") > 0.3
    assert mean("erasure", "shortcut_token", "random one turns it") == 0


def test_its_attention_does_not_order_tokens_as_leaving_them_out_does():
    """One token decides, so leaving out finds it; the attention has it among the last."""
    assert abs(mean("agreement", "shortcut_deceptive", "τ of attention and leave-one-out")) < 0.15
    by_chance = mean("agreement", "shortcut_deceptive", "top overlap by chance")
    overlap = mean("agreement", "shortcut_deceptive", "top overlap of attention and leave-one-out")
    assert overlap < by_chance + 0.1


def test_what_recall_looks_up_it_looks_up_by_attention():
    assert mean("permutation", "recall", "flips") > 0.8
    assert mean("head_patterns", "recall", "induction") > 0.95


@pytest.mark.parametrize(
    ("name", "least", "most"), [("shortcut_deceptive", 0.85, 1), ("recall", 0, 0.4)]
)
def test_only_attention_that_decides_cannot_be_exchanged_for_another(name, least, most):
    asked = questions(name)[:4]
    found = TRIALS["adversarial_attention"].run(asked, seed=1, candidates=2, steps=40)
    shares = found.figures["share of the largest JSD"]
    assert least <= shares.min() and shares.mean() <= most + 1e-6
