"""Ctrl-C at random moments of many kinds of work: the model is as it was, and free."""

import signal
import threading
import time

import numpy as np
import pytest
import torch
from campaigning import times
from interrupting import CHANGING, count_moments, interrupt_at, is_free, state_of
from subjects import few
from tiny import subject_parts

import attlas
from attlas.methods import METHODS

TEXT = "the film was not good"
INTERRUPTS = times(2_500)
SIGNALS = times(2_500)
# An interrupt inside a callback of a weak reference is told on standard error, and no more.
swallowed = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")


def explaining(method):
    options = few(method)
    return lambda own: attlas.explain(own, TEXT, method, maps=False, **options)


WORK = {
    **{method: explaining(method) for method in METHODS.names()},
    "attention": lambda own: own.attention(TEXT),
    "predict": lambda own: own.predict([TEXT]),
    "tree": lambda own: attlas.attribution_tree(own, TEXT, steps=2),
    "generic": lambda own: attlas.explain(own, [TEXT, "a cat sat"], "attention_rollout"),
}


@pytest.fixture
def trained():
    """A subject whose model is being trained."""
    own = attlas.Subject(*subject_parts("sequence classification"))
    own.model.train()
    return own


@pytest.mark.slow
@swallowed
def test_at_moments_where_things_are_put_in_place(trained):
    random, made = np.random.default_rng(0), 0
    totals = {}
    for name, work in WORK.items():
        work(trained)
        totals[name] = count_moments(lambda work=work: work(trained), CHANGING)
    before = state_of(trained.model)
    while made < INTERRUPTS:
        for name, work in WORK.items():
            moment = int(random.integers(totals[name]))
            interrupt_at(moment, lambda work=work: work(trained), CHANGING)
            assert state_of(trained.model) == before, (name, moment)
            made += 1
    assert is_free(trained.model)
    assert torch.overrides._get_current_function_mode() is None


@pytest.mark.slow
@swallowed
def test_by_real_signals(trained):
    """A signal after a random time, as a user's hand sends it; the same figures afterwards."""
    random, stopped, spans = np.random.default_rng(1), 0, {}
    for name, work in WORK.items():
        work(trained)
        start = time.perf_counter()
        work(trained)
        spans[name] = time.perf_counter() - start
    before = state_of(trained.model)
    expected = attlas.explain(trained, TEXT, "raw_attention").scores
    for number in range(SIGNALS):
        name = list(WORK)[number % len(WORK)]
        try:
            signal.setitimer(signal.ITIMER_REAL, max(1e-5, random.uniform(0, spans[name])))
            WORK[name](trained)
            signal.setitimer(signal.ITIMER_REAL, 0)
        except KeyboardInterrupt:
            stopped += 1
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
        assert state_of(trained.model) == before, name
    assert stopped > SIGNALS // 4
    assert is_free(trained.model)
    assert threading.active_count() < 10
    np.testing.assert_array_equal(attlas.explain(trained, TEXT, "raw_attention").scores, expected)


@pytest.fixture(autouse=True)
def alarms_interrupt():
    before = signal.signal(signal.SIGALRM, signal.default_int_handler)
    yield
    signal.setitimer(signal.ITIMER_REAL, 0)
    signal.signal(signal.SIGALRM, before)
