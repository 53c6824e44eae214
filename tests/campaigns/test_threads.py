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
    threads = [
        threading.Thread(target=bench.guarded, args=(work, seed))
        for work, count in ((bench.call, PLAIN), (bench.explain, EXPLAINING))
        for seed in range(count)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert bench.wrong == []
