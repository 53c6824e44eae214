"""Answers to texts without some of their tokens: all texts together, against text by text.

Comprehensiveness curves of five random orders of the built-in reviews: every number of first tokens
is removed. The plain loop takes one text at a time and runs its changed copies as one batch, padded
to the longest. Both run the same rows on the same model, none twice. Every measure that removes
tokens asks in this way; there is no public call of its own.
"""

from collections.abc import Iterator
from functools import partial

import numpy as np
import torch
from comparing import Row, Setup, largest_difference

import attlas
from attlas.removing.erasures import Erasures, Ways

ORDERS = 5


def compare(setup: Setup) -> Iterator[Row]:
    subject = attlas.load("sentiment", device=setup.device)
    texts = [str(each.text) for each in attlas.texts("reviews")][: setup.size(50, 4)]
    for how in ("delete", "mask"):
        erasures = Erasures(subject.ask(texts), how)
        ways = [_curves(len(erasures.content(text)), text) for text in range(len(texts))]
        work = partial(_together, erasures, ways)
        loop = partial(_by_loop, subject, erasures, texts, ways)
        ours, peer = setup.in_turns(work, loop, rounds=2)
        rows = sum(map(len, ways))
        yield Row(
            f"{rows:,} answers of {len(texts)} texts without some tokens ({how})",
            "text by text",
            ours,
            peer,
            difference=largest_difference(work(), loop()),
            unit="of a log-probability",
        )


def _curves(count: int, seed: int) -> Ways:
    """Sets of the first tokens of some random orders, every size except all, each set once."""
    draw = np.random.default_rng(seed)
    ranks = np.stack([draw.permutation(count) for _ in range(ORDERS)])
    sets = ranks[:, None, :] < np.arange(1, count)[:, None]
    return np.unique(sets.reshape(-1, count), axis=0)


def _together(erasures: Erasures, ways: list[Ways]) -> list[np.ndarray]:
    for text in range(len(ways)):
        erasures.forget(text)
    erasures.ask(dict(enumerate(ways)))
    return [erasures.of(text, sets).log_probability for text, sets in enumerate(ways)]


@torch.no_grad()
def _by_loop(
    subject: attlas.Subject, erasures: Erasures, texts: list[str], ways: list[Ways]
) -> list[np.ndarray]:
    found = []
    for text, (words, sets) in enumerate(zip(texts, ways, strict=True)):
        ids = subject.tokenizer(words)["input_ids"]
        device = subject.device
        target = int(subject.model(input_ids=torch.tensor([ids], device=device)).logits[0].argmax())
        places = np.array(erasures.content(text))
        copies = [_without(subject, ids, set(places[way].tolist()), erasures.how) for way in sets]
        batch = subject.tokenizer.pad({"input_ids": copies}, return_tensors="pt").to(device)
        logits = subject.model(**batch).logits
        found.append(logits.float().log_softmax(-1)[:, target].cpu().numpy())
    return found


def _without(subject: attlas.Subject, ids: list[int], gone: set[int], how: str) -> list[int]:
    """The ids of a text without some tokens."""
    if how == "delete":
        return [number for place, number in enumerate(ids) if place not in gone]
    mask: int = subject.tokenizer.mask_token_id
    return [mask if place in gone else number for place, number in enumerate(ids)]
