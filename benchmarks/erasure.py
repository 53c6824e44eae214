"""Answers to texts without some of their tokens: all texts together, compared with one by one.

    ATTLAS_DATA=... python benchmarks/erasure.py [--model sentiment] [--count 50] [--rounds 3]

Comprehensiveness curves of five random orders of SST-2 dev sentences: every number of first tokens
is removed, by deletion and by masking. The plain loop takes one text at a time and runs its changed
copies as one batch, padded to the longest. Both run the same rows on the same model, none twice.
Times are processor times: the median of several rounds, in which the two take turns.
"""

import argparse
import time
from collections.abc import Callable
from statistics import median
from typing import Any

import numpy as np
import torch

import attlas
from attlas import Subject
from attlas.removing.erasures import Erasures, Ways

ORDERS = 5


def curves(count: int, seed: int) -> Ways:
    """Sets of the first tokens of some random orders, every size except all, each set once."""
    draw = np.random.default_rng(seed)
    ranks = np.stack([draw.permutation(count) for _ in range(ORDERS)])
    sets = ranks[:, None, :] < np.arange(1, count)[:, None]
    return np.unique(sets.reshape(-1, count), axis=0)


def ids_without(subject: Subject, ids: list[int], gone: set[int], how: str) -> list[int]:
    """The ids of a text without some tokens."""
    if how == "delete":
        return [number for place, number in enumerate(ids) if place not in gone]
    mask: int = subject.tokenizer.mask_token_id
    return [mask if place in gone else number for place, number in enumerate(ids)]


@torch.no_grad()
def by_loop(subject: Subject, erasures: Erasures, texts: list[str], ways: list[Ways]) -> Any:
    """One text at a time, all its copies in one padded batch."""
    found = []
    for text, (words, sets) in enumerate(zip(texts, ways, strict=True)):
        ids = subject.tokenizer(words)["input_ids"]
        target = int(subject.model(input_ids=torch.tensor([ids])).logits[0].argmax())
        places = np.array(erasures.content(text))
        copies = [
            ids_without(subject, ids, set(places[way].tolist()), erasures.how) for way in sets
        ]
        batch = subject.tokenizer.pad({"input_ids": copies}, return_tensors="pt")
        logits = subject.model(**batch).logits
        found.append(logits.float().log_softmax(-1)[:, target].numpy())
    return found


def together(erasures: Erasures, ways: list[Ways]) -> Any:
    """All texts at once."""
    for text in range(len(ways)):
        erasures.forget(text)
    erasures.ask(dict(enumerate(ways)))
    return [erasures.of(text, sets).log_probability for text, sets in enumerate(ways)]


def timed(work: Callable[[], Any]) -> tuple[float, Any]:
    start = time.process_time()
    found = work()
    return time.process_time() - start, found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", default="sentiment")
    parser.add_argument("--count", type=int, default=50)
    parser.add_argument("--rounds", type=int, default=3)
    given = parser.parse_args()
    subject = attlas.load(given.model)
    examples = attlas.texts("sst2", split="dev", count=given.count)
    texts = [str(example.text) for example in examples]
    for how in ("delete", "mask"):
        erasures = Erasures(subject.ask(texts), how)
        ways = [curves(len(erasures.content(text)), text) for text in range(len(texts))]
        rows = sum(map(len, ways))
        times, kept = [], []
        for _ in range(given.rounds):
            slow, plain = timed(lambda e=erasures, w=ways: by_loop(subject, e, texts, w))
            fast, ours = timed(lambda e=erasures, w=ways: together(e, w))
            times.append((slow, fast))
            kept = [float(np.abs(a - b).max()) for a, b in zip(plain, ours, strict=True)]
        slow, fast = (median(column) for column in zip(*times, strict=True))
        print(f"{subject.name}, {how}: {rows} rows of {len(texts)} texts", flush=True)
        print(f"  text by text  {rows / slow:8.0f} rows/s")
        print(f"  all together  {rows / fast:8.0f} rows/s, {slow / fast:.2f} times")
        print(f"  largest difference of a log-probability {max(kept):.1e}", flush=True)


if __name__ == "__main__":
    main()
