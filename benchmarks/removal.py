"""How far the removals agree: leave-one-out by each of them, on SST-2 dev.

    ATTLAS_DATA=... python benchmarks/removal.py [--model sentiment] [--count 40]

For each pair of removals: the mean over texts of Spearman's correlation between the falls of the
probability of the model's prediction, token by token. For each removal: the mean probability of the
prediction without a random half of the tokens, and how often the prediction stays the same.
"""

import argparse

import numpy as np
from scipy.stats import spearmanr

import attlas
from attlas.removing.erasures import Erasures, Ways
from attlas.removing.removal import REMOVALS

HALVES = 5


def random_halves(count: int, seed: int) -> Ways:
    draw = np.random.default_rng(seed)
    return np.stack([draw.permutation(count) < count // 2 for _ in range(HALVES)])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", default="sentiment")
    parser.add_argument("--count", type=int, default=40)
    given = parser.parse_args()
    subject = attlas.load(given.model)
    texts = [str(each.text) for each in attlas.texts("sst2", split="dev", count=given.count)]
    questions = subject.ask(texts)
    falls: dict[str, list[np.ndarray]] = {}
    halves: dict[str, tuple[float, float]] = {}
    for how in REMOVALS:
        erasures = Erasures(questions, how)
        counts = [len(erasures.content(text)) for text in range(len(texts))]
        erasures.ask({text: np.eye(count, dtype=bool) for text, count in enumerate(counts)})
        erasures.ask({text: random_halves(count, text) for text, count in enumerate(counts)})
        falls[how] = [
            erasures.whole(text).probability
            - erasures.of(text, np.eye(count, dtype=bool)).probability
            for text, count in enumerate(counts)
        ]
        found = [erasures.of(text, random_halves(count, text)) for text, count in enumerate(counts)]
        sure = float(np.mean([each.probability.mean() for each in found]))
        halves[how] = sure, float(np.mean([each.chosen.mean() for each in found]))
    print(f"{subject.name}, {len(texts)} texts")
    print(f"{'':<16}" + "".join(f"{how:>16}" for how in REMOVALS) + "   probability  same")
    for one in REMOVALS:
        cells = [
            np.mean([spearmanr(a, b)[0] for a, b in zip(falls[one], falls[other], strict=True)])
            for other in REMOVALS
        ]
        sure, same = halves[one]
        shown = "".join(f"{cell:16.2f}" for cell in cells)
        print(f"{one:<16}{shown}{sure:14.2f}{same:6.2f}", flush=True)


if __name__ == "__main__":
    main()
