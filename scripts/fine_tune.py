#!/usr/bin/env python3
"""Fine-tune a pretrained encoder on a task, once for each seed, for the studies that need one.

scripts/fine_tune.py BASE sst2 --out models/sst2    models/sst2/seed-0 … seed-4
scripts/fine_tune.py BASE rte --out models/rte --first-seed 3 --seeds 1

Each folder holds a model, its tokenizer, and `training.json`: what was done, with what, how long,
and how good the model is on the dev texts. A folder with a model is left as it is.
"""

from __future__ import annotations

import argparse
import json
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from random import Random
from time import monotonic
from typing import Any

import torch
from transformers import (
    AutoModelForSequenceClassification,
    AutoTokenizer,
    get_linear_schedule_with_warmup,
)

from attlas.data import texts
from attlas.data.example import Example
from attlas.studies.support.run import machine, versions
from attlas.studies.support.several_models import weights_of

RECORD = "training.json"
RATE, ROWS, WARM = 5e-5, 32, 0.1
EPOCHS, FEWEST, MOST = 3, 500, 2000  # epochs, but no fewer and no more steps
LONGEST = 128  # tokens, for a sentence or a pair of sentences
LONGEST_OF = {"eraser_movies": 512}


def fine_tune(base: Path, task: str, seed: int, out: Path, device: str, most: int) -> None:
    """Train one model and write its folder."""
    begun = monotonic()
    torch.manual_seed(seed)
    taught, tested = (texts(task, split=split) for split in ("train", "dev"))
    labels = sorted({str(each.label) for each in taught})
    names = dict(enumerate(labels))
    tokenizer = AutoTokenizer.from_pretrained(base)
    tokenizer.model_max_length = LONGEST_OF.get(task, LONGEST)
    model = AutoModelForSequenceClassification.from_pretrained(
        base,
        dtype=torch.float32,
        num_labels=len(labels),
        id2label=names,
        label2id={label: number for number, label in names.items()},
    ).to(device)
    steps = min(max(EPOCHS * -(-len(taught) // ROWS), FEWEST), MOST, most)
    with rounded_products():
        learn(model, tokenizer, taught, steps, seed)
    right = [
        answer == str(each.label)
        for answer, each in zip(said(model, tokenizer, tested), tested, strict=True)
    ]
    aside = out.parent.with_name(f"{out.parent.name}.unfinished") / out.name
    tokenizer.save_pretrained(aside)
    model.save_pretrained(aside)
    record = {
        "base": base.name,
        "task": task,
        "seed": seed,
        "steps": steps,
        "rows": ROWS,
        "rate": RATE,
        "dev accuracy": sum(right) / len(right),
        "seconds": round(monotonic() - begun, 1),
        "machine": machine(device),
        "versions": versions(),
        "weights": weights_of(aside),
    }
    (aside / RECORD).write_text(f"{json.dumps(record, indent=1)}\n", encoding="utf-8")
    shutil.rmtree(out, ignore_errors=True)  # a record without a model, if anything
    out.parent.mkdir(parents=True, exist_ok=True)
    aside.rename(out)
    with suppress(OSError):  # other models are still being written there
        aside.parent.rmdir()
    print(
        f"{out}: {record['dev accuracy']:.3f} of {len(tested)}, {record['seconds']} s", flush=True
    )


def learn(model: Any, tokenizer: Any, taught: Sequence[Example], steps: int, seed: int) -> None:
    """AdamW with a linear schedule; the seed decides the order of the texts."""
    optimizer = torch.optim.AdamW(model.parameters(), lr=RATE, weight_decay=0.01)
    schedule = get_linear_schedule_with_warmup(optimizer, round(WARM * steps), steps)
    batches = drawn(len(taught), Random(seed))
    model.train()
    for _ in range(steps):
        rows = [taught[number] for number in next(batches)]
        right = torch.tensor(
            [model.config.label2id[str(each.label)] for each in rows], device=model.device
        )
        model(**encoded(model, tokenizer, rows), labels=right).loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        optimizer.zero_grad()
    model.eval()


@contextmanager
def rounded_products() -> Iterator[None]:
    """Products are rounded to TF32 within the block, however it ends, and never behind it."""
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("high")
    try:
        yield
    finally:
        torch.set_float32_matmul_precision(before)


def drawn(count: int, random: Random) -> Iterator[list[int]]:
    """Batches of row numbers, epoch after epoch, each in another order."""
    while True:
        order = random.sample(range(count), count)
        yield from (order[start : start + ROWS] for start in range(0, count, ROWS))


def encoded(model: Any, tokenizer: Any, rows: Sequence[Example]) -> Any:
    """Texts or pairs of texts as tensors where the model is."""
    given = [each.text for each in rows]
    sides = (
        [list(side) for side in zip(*given, strict=True)]
        if isinstance(given[0], tuple)
        else [given]
    )
    made = tokenizer(*sides, padding=True, truncation=True, return_tensors="pt")
    return made.to(model.device)


@torch.no_grad()
def said(model: Any, tokenizer: Any, tested: Sequence[Example]) -> list[str]:
    """The label that the model gives each text."""
    found: list[str] = []
    for start in range(0, len(tested), 4 * ROWS):
        logits = model(**encoded(model, tokenizer, tested[start : start + 4 * ROWS])).logits
        found += [model.config.id2label[number] for number in logits.argmax(dim=-1).tolist()]
    return found


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("base", type=Path, help="a folder with a pretrained encoder")
    parser.add_argument("task", help="sst2, rte, mrpc, mnli, eraser_movies or another set by name")
    parser.add_argument("--out", type=Path, required=True, help="gets a folder for each seed")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--steps", type=int, default=MOST, help="at most so many")
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    given = parser.parse_args(arguments)
    for seed in range(given.first_seed, given.first_seed + given.seeds):
        out = given.out / f"seed-{seed}"
        if not (out / "config.json").is_file():
            fine_tune(given.base, given.task, seed, out, given.device, given.steps)


if __name__ == "__main__":
    main()
