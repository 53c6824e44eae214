"""How often the licence of a heat map keeps its word when other orders of removal are drawn.

    ATTLAS_DATA=... python benchmarks/licences.py [--model sentiment] [--texts 40] [--seeds 4]

SST-2 dev sentences, drawn by a fixed seed. For each method the script prints how often each word is
given, how often two seeds give the same word for a text, and how many texts have both opposite
words.
"""

import argparse
import random
from collections import Counter
from itertools import combinations

import numpy as np

import attlas
from attlas.data.read_examples import read_examples
from attlas.explaining.licensing import HeatMap, licences, text_seed, two_removals
from attlas.models.encoding.request import Request
from attlas.results.support.licence import MAY, MAY_NOT

METHODS = (
    "attention_rollout",
    "raw_attention",
    "gradient_attention",
    "integrated_gradients",
    "attn_lrp",
    "random_scores",
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", default="sentiment")
    parser.add_argument("--texts", type=int, default=40)
    parser.add_argument("--seeds", type=int, default=4)
    given = parser.parse_args()
    subject = attlas.load(given.model)
    examples = list(read_examples("sst2").examples)
    texts = [each.text for each in random.Random(0).sample(examples, given.texts)]
    erasures = two_removals(subject.ask(texts, Request()))
    for method in METHODS:
        explained = attlas.explain(subject, texts, method, maps=False)
        words = []
        for seed in range(given.seeds):
            heat_maps = [
                HeatMap(
                    number,
                    each.scores[erasures[0].content(number)].astype(np.float64),
                    each.origin.signed,
                    text_seed(texts[number], seed),
                )
                for number, each in enumerate(explained)
            ]
            words.append([each.word for each in licences(erasures, heat_maps)])
        by_text = list(zip(*words, strict=True))
        same = np.mean([one == other for each in by_text for one, other in combinations(each, 2)])
        opposite = sum({MAY, MAY_NOT} <= set(each) for each in by_text)
        counts = Counter(word for each in words for word in each)
        print(f"{method}: same word {same:.3f}, opposite {opposite}, {dict(counts)}", flush=True)


if __name__ == "__main__":
    main()
