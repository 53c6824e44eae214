"""How near a beam search comes to the best order of tokens.

    ATTLAS_DATA=... python benchmarks/ceilings.py [--model sentiment] [--removal delete]

SST-2 dev sentences of 6 to 9 content tokens: the model runs on every set of them, so the best order
is known. The script prints (found − random) / (best − random), sums over texts, where random is the
mean of 200 orders, and the share of texts in which the search found the best order.
"""

import argparse

import numpy as np

import attlas
from attlas.removing.ceilings import AIMS, best_orders
from attlas.removing.erasures import Erasures, Ways

SHORTEST, LONGEST, ORDERS = 6, 9, 200


def every(count: int) -> list[int]:
    return list(range(1, count))


def all_sets(count: int) -> Ways:
    """All sets: number s contains token t if bit t of s is one."""
    return ((np.arange(2**count)[:, None] >> np.arange(count)) & 1).astype(bool)


def worth(probability: np.ndarray, aim: str) -> np.ndarray:
    """How far the probability falls, by the number of the set that comes first."""
    return probability[0] - (probability if aim == "comprehensiveness" else probability[::-1])


def best_of_all(falls: np.ndarray, aim: str) -> float:
    """The best mean over chains of growing sets, one token at a time, without the whole text."""
    count = int(np.log2(len(falls)))
    pick = max if aim == "comprehensiveness" else min
    totals = {0: 0.0}
    for _ in range(1, count):
        grown: dict[int, float] = {}
        for number, total in totals.items():
            for token in range(count):
                larger = number | 1 << token
                if larger != number:
                    reached = total + falls[larger]
                    grown[larger] = pick(reached, grown.get(larger, reached))
        totals = grown
    return float(pick(totals.values()) / (count - 1))


def of_random_orders(falls: np.ndarray) -> float:
    draw, count = np.random.default_rng(0), int(np.log2(len(falls)))
    orders = np.stack([draw.permutation(count) for _ in range(ORDERS)])
    return float(falls[np.cumsum(1 << orders, axis=1)[:, :-1]].mean())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", default="sentiment")
    parser.add_argument("--removal", default="delete")
    parser.add_argument("--count", type=int, default=400)
    given = parser.parse_args()
    examples = attlas.texts("sst2", split="dev", count=given.count)
    texts = [str(example.text) for example in examples]
    erasures = Erasures(attlas.load(given.model).ask(texts), given.removal)
    counts = {text: len(erasures.content(text)) for text in range(len(texts))}
    short = [text for text, count in counts.items() if SHORTEST <= count <= LONGEST]
    erasures.ask({text: all_sets(counts[text]) for text in short})
    print(f"{given.model}, {given.removal}: {len(short)} texts")
    for aim in AIMS:
        falls = {
            text: worth(erasures.of(text, all_sets(counts[text])).probability, aim)
            for text in short
        }
        best = np.array([best_of_all(falls[text], aim) for text in short])
        random = np.array([of_random_orders(falls[text]) for text in short])
        for width in (1, 2, 4):
            found = best_orders(erasures, short, [aim], every, width)[aim]
            values = np.array([found[text].value for text in short])
            reached = (values - random).sum() / (best - random).sum()
            exact = np.isclose(values, best, atol=1e-6).mean()
            print(f"{aim:<18} width {width}  {reached:.4f}  exact in {exact:.0%}", flush=True)


if __name__ == "__main__":
    main()
