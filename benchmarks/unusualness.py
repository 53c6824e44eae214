"""How strange texts without some of their tokens are to a model, by each removal, on SST-2 dev.

    ATTLAS_DATA=... python benchmarks/unusualness.py [--model sentiment] [--count 60]

0.5 means no stranger than the same text cut short, 1 always stranger; with a 95 % interval.
"""

import argparse

import attlas
from attlas.mathematics.intervals import bootstrap_means
from attlas.removing.removal import REMOVALS
from attlas.removing.unusualness import unusualness


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", default="sentiment")
    parser.add_argument("--count", type=int, default=60)
    given = parser.parse_args()
    subject = attlas.load(given.model)
    texts = [str(each.text) for each in attlas.texts("sst2", split="dev", count=given.count)]
    questions = list(subject.ask(texts))
    for how in REMOVALS:
        found = unusualness(questions, how)
        (index,) = bootstrap_means(found.values[:, None])
        print(f"{how:<16}{index.mean:.2f} [{index.low:.2f}, {index.high:.2f}]", flush=True)


if __name__ == "__main__":
    main()
