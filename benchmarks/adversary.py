"""The search for adversarial attention: many texts at once, and one by one.

    ATTLAS_DATA=... python benchmarks/adversary.py [--model sentiment] [--device cuda] [--count 64]

SST-2 dev sentences, cut to the same number of tokens, so that all can share a batch. Both ways
search with the same seeds, so their results agree up to rounding. Times are wall-clock times: the
median of several rounds, in which the two take turns.
"""

import argparse
import time
from collections.abc import Callable
from statistics import median

import numpy as np
import torch

import attlas
from attlas.models.asking.question import Question
from attlas.trials.adversarial_attention import DISTANCE, adversarial_attention


def equally_long(subject: attlas.Subject, count: int, length: int) -> list[str]:
    """Texts that all have `length` tokens."""
    found = []
    for example in attlas.texts("sst2", split="dev"):
        ids = subject.tokenizer(str(example.text), add_special_tokens=False)["input_ids"]
        text = subject.tokenizer.decode(ids[:length])
        again = subject.tokenizer(text, add_special_tokens=False)["input_ids"]
        if len(again) == length:
            found.append(text)
        if len(found) == count:
            return found
    raise SystemExit(f"only {len(found)} texts have {length} tokens")


def clock(work: Callable[[], np.ndarray], device: str) -> tuple[float, np.ndarray]:
    start = time.perf_counter()
    found = work()
    if device == "cuda":
        torch.cuda.synchronize()
    return time.perf_counter() - start, found


def searched(questions: list[Question], steps: int) -> np.ndarray:
    return adversarial_attention(questions, steps=steps).figures[DISTANCE]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", default="sentiment")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--count", type=int, default=64)
    parser.add_argument("--length", type=int, default=20)
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--rounds", type=int, default=3)
    given = parser.parse_args()
    subject = attlas.load(given.model)
    subject.model.to(given.device)
    texts = equally_long(subject, given.count, given.length)
    together = subject.ask(texts)
    apart = [question.rows([row]) for question in together for row in range(len(question))]
    searched(together, 2), searched(apart[:1], 2)
    times = []
    for _ in range(given.rounds):
        slow, one_by_one = clock(lambda: searched(apart, given.steps), given.device)
        fast, at_once = clock(lambda: searched(together, given.steps), given.device)
        times.append((slow, fast))
    slow, fast = (median(column) for column in zip(*times, strict=True))
    off = np.abs(one_by_one - at_once)
    print(f"{subject.name}, {given.device}: {given.count} texts of {given.length} tokens")
    print(f"  one by one   {slow:8.2f} s")
    print(f"  all at once  {fast:8.2f} s, {slow / fast:.1f} times")
    print(
        f"  ε-max JSD {at_once.mean():.4f}; difference: mean {off.mean():.1e}, max {off.max():.1e}"
    )


if __name__ == "__main__":
    main()
