"""Threads that use a model plainly while others explain it: every answer is as without them."""

import threading

import numpy as np
import pytest
import torch
from campaigning import times
from subjects import few
from tiny import subject_parts

import attlas
from attlas.methods import METHODS

STEPS = times(200, 20)
TEXTS = ["the film was not good", "a cat sat", "my dog was not kind"]
CALLS = times(6_400, 200)
EXPLANATIONS = times(500, 24)
PLAIN, EXPLAINING = 4, 4


class Bench:
    """A subject, what it answers alone, and what went wrong beside others."""

    def __init__(self):
        self.own = attlas.Subject(*subject_parts("sequence classification"))
        self.own.model.eval()
        self.given = [dict(self.own.tokenizer(text, return_tensors="pt")) for text in TEXTS]
        self.jobs = [(name, number) for name in METHODS.names() for number in range(len(TEXTS))]
        self.answers = [self.plain(number) for number in range(len(TEXTS))]
        self.alone = {job: self.explained(*job) for job in self.jobs}
        self.wrong = []

    def plain(self, number):
        with torch.no_grad():
            return self.own.model(**self.given[number]).logits

    def explained(self, method, number):
        return attlas.explain(self.own, TEXTS[number], method, maps=False, **few(method)).scores

    def call(self, seed):
        for number in np.random.default_rng(seed).integers(len(TEXTS), size=CALLS // PLAIN):
            if not torch.equal(self.plain(number), self.answers[number]):
                self.wrong.append(number)

    def explain(self, seed):
        random = np.random.default_rng(seed)
        for place in random.integers(len(self.jobs), size=EXPLANATIONS // EXPLAINING):
            job = self.jobs[place]
            if not np.array_equal(self.explained(*job), self.alone[job], equal_nan=True):
                self.wrong.append(job)

    def guarded(self, work, seed):
        try:
            work(seed)
        except Exception as problem:
            self.wrong.append(repr(problem))


@pytest.mark.slow
def test_plain_calls_and_explanations_do_not_disturb_each_other():
    bench = Bench()
    works = ((bench.call, PLAIN), (bench.explain, EXPLAINING))
    in_threads(bench, *((work, seed) for work, count in works for seed in range(count)))


def in_threads(bench, *works):
    threads = [threading.Thread(target=bench.guarded, args=given) for given in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert bench.wrong == []


@pytest.mark.slow
def test_eight_threads_explain_as_one_does():
    bench = Bench()
    in_threads(bench, *((bench.explain, seed) for seed in range(8)))


class Training(Bench):
    """A model that one thread trains while others explain it; dropout is on, and without chance."""

    def __init__(self):
        super().__init__()
        self.own.model.train()
        for module in self.own.model.modules():
            if isinstance(module, torch.nn.Dropout):
                module.p = 1.0
        self.start = {name: each.clone() for name, each in self.own.model.state_dict().items()}

    def train(self, _=0):
        """The weights after some steps from the start."""
        model = self.own.model
        model.load_state_dict(self.start)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for number in range(STEPS):
            with self.own.held():
                model(**self.given[number % 3]).logits[0, 0].backward()
                optimizer.step()
                optimizer.zero_grad()
        self.trained = [each.detach().clone() for each in model.parameters()]

    def explain(self, seed):
        random = np.random.default_rng(seed)
        for place in random.integers(len(self.jobs), size=STEPS // 10):
            self.explained(*self.jobs[place])


@pytest.mark.slow
def test_training_and_explaining_take_turns():
    bench = Training()
    bench.train()
    alone = bench.trained
    in_threads(bench, (bench.train, 0), *((bench.explain, seed) for seed in range(3)))
    assert all(map(torch.equal, bench.trained, alone))
    assert all(module.training for module in bench.own.model.modules())
