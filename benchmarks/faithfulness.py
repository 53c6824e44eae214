"""Comprehensiveness and sufficiency of every method on SST-2 dev, with a fine-tuned model.

    ATTLAS_DATA=... python benchmarks/faithfulness.py --model FOLDER [--device cuda] [--count 872]

For each text and method, p is the probability of the model's own prediction. Comprehensiveness is
the mean fall of p without the 1, 5, 10, 20 and 50 % of the content tokens that score highest
(higher is better); sufficiency is the mean fall of p with only these tokens (lower is better).
Tokens are masked; numbers of tokens are rounded up. Scores count with their sign. The interval is a
95 % bootstrap over texts.
"""

import argparse
import json
import math
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch

import attlas
from attlas.errors import AttlasError
from attlas.mathematics.intervals import bootstrap_mean
from attlas.methods import METHODS
from attlas.models.asking.question import Question
from attlas.models.asking.scores import target_scores
from attlas.removing.removal import masked_by, removable

SHARES = (0.01, 0.05, 0.1, 0.2, 0.5)


def hidden_sets(scores: np.ndarray, content: list[int], width: int) -> torch.Tensor:
    """For each share, the top tokens; then for each share, all tokens except these."""
    order = [content[i] for i in np.argsort(-scores[content], kind="stable")]
    rows = torch.zeros(2 * len(SHARES), width, dtype=torch.bool)
    for number, share in enumerate(SHARES):
        count = math.ceil(share * len(content))
        rows[number, order[:count]] = True
        rows[len(SHARES) + number, order[count:]] = True
    return rows


def judge(question: Question, scores: torch.Tensor) -> np.ndarray:
    """Comprehensiveness and sufficiency of each row, `[row, 2]`."""
    width = len(question.inputs.tokens[0])
    sets = [
        hidden_sets(scores[row].float().cpu().numpy(), removable(question, row), width)
        for row in range(len(question))
    ]
    rows = [row for row in range(len(question)) for _ in range(2 * len(SHARES))]
    found = [
        target_scores(part, "probability") for part in masked_by(question, torch.cat(sets), rows)
    ]
    changed = torch.cat(found).view(len(question), 2, len(SHARES))
    return (target_scores(question, "probability")[:, None] - changed.mean(-1)).cpu().numpy()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", required=True)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--count", type=int, default=872)
    parser.add_argument("--texts", type=Path, help="texts, one per line, instead of SST-2 dev")
    parser.add_argument("--methods", nargs="*", default=METHODS.names())
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    subject = attlas.load(given.model, device=given.device, dtype="float32")
    if given.texts:
        texts = given.texts.read_text(encoding="utf-8").splitlines()[: given.count]
    else:
        texts = [example.text for example in attlas.texts("sst2", split="dev", count=given.count)]
    questions = [replace(each, maps=False) for each in subject.ask(texts)]
    print(f"{len(texts)} texts, {subject.name}", flush=True)
    print(f"{'method':<28} {'comprehensiveness':>26} {'sufficiency':>26}   seconds")
    kept = {}
    for name in given.methods:
        start = time.perf_counter()
        try:
            found = np.concatenate(
                [judge(each, METHODS[name].score(each, {}).scores) for each in questions]
            )
        except AttlasError as problem:
            print(f"{name:<28} {problem}", flush=True)
            continue
        kept[name] = found.mean(0).tolist()
        cells = []
        for column in found.T:
            sure = bootstrap_mean([[float(value)] for value in column])
            cells.append(f"{sure.mean:7.3f} [{sure.low:6.3f}, {sure.high:6.3f}]")
        spent = time.perf_counter() - start
        print(f"{name:<28} {cells[0]:>26} {cells[1]:>26} {spent:9.1f}", flush=True)
    if given.json:
        given.json.write_text(json.dumps(kept))


if __name__ == "__main__":
    main()
