"""Make many texts out of few: crops, joins, words left out, words replaced by their neighbours."""

import multiprocessing
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from random import Random

import torch
from torch import Tensor
from torch.nn.functional import normalize

from attlas.embedded.training.sentiment_data import TrainingText, fingerprint

NEIGHBOURS = 8
JOINTS = (" . ", ". ", " , but ", ", ", " and ", " , and ", " ; ", " -- ", "! ", ", yet ")
REPLACED = (0.0, 0.0, 0.1, 0.2, 0.4)
LEFT_OUT = (0.0, 0.0, 0.0, 0.1, 0.2)
FRAMES = ("{}", "a {} film", "{} .", "it was {}", "not {}", "the {}")
SHARD = 20_000


@dataclass(frozen=True)
class Pools:
    """What texts are made of, and what stands near each word."""

    phrases: Sequence[str]
    sentences: Sequence[str]
    reviews: Sequence[str]
    near: Mapping[str, Sequence[str]]
    words: Sequence[str]
    never: frozenset[str]


def near_words(vocabulary: Mapping[str, int], vectors: Tensor) -> dict[str, list[str]]:
    """For each whole word of a vocabulary, those with the nearest vectors."""
    words = [word for word in vocabulary if re.fullmatch("[a-z]{3,}", word)]
    chosen = normalize(vectors[[vocabulary[word] for word in words]].float(), dim=1)
    found = {}
    for start in range(0, len(words), 2048):
        alike = chosen[start : start + 2048] @ chosen.T
        nearest = alike.topk(min(NEIGHBOURS + 1, len(words))).indices[:, 1:].tolist()
        for word, places in zip(words[start:], nearest, strict=False):
            found[word] = [words[place] for place in places]
    return found


def sentences_of(text: str) -> list[str]:
    """A review cut after its full stops; what is too short or too long is left out."""
    parts = re.split(r"(?<=[.!?])\s+", text)
    return [part for part in parts if 3 <= len(part.split()) <= 60]


def gather(
    rows: Sequence[TrainingText], near: Mapping[str, Sequence[str]], never: frozenset[str]
) -> Pools:
    """Sort the training text into phrases, sentences and whole reviews.

    `never` holds the fingerprints of texts that must not be made.
    """
    phrases = [row.text for row in rows if row.source in ("sst2", "sst5")]
    from_grammar = [row.text for row in rows if row.source == "grammar"]
    reviews = [row.text for row in rows if row.source not in ("sst2", "sst5", "grammar")]
    sentences = dict.fromkeys(
        [*from_grammar, *(part for text in reviews for part in sentences_of(text))]
    )
    return Pools(phrases, list(sentences), reviews, near, sorted(near), never)


def changed(words: Sequence[str], pools: Pools, random: Random) -> list[str]:
    """The words with some left out and some replaced, most by a neighbour."""
    left_out, replaced = random.choice(LEFT_OUT), random.choice(REPLACED)
    result = []
    for word in words:
        if random.random() < left_out:
            continue
        near = pools.near.get(word.lower()) if random.random() < replaced else None
        if near:
            word = random.choice(near if random.random() < 0.8 else pools.words)
        result.append(word)
    return result or list(words)


def cropped(words: Sequence[str], random: Random, *, fewest: int, most: int) -> Sequence[str]:
    """A run of the words."""
    count = random.randint(min(fewest, len(words)), min(most, len(words)))
    start = random.randint(0, len(words) - count)
    return words[start : start + count]


def variation(pools: Pools, long_phrases: Sequence[str], random: Random) -> str:
    """One new text from the pools."""
    kind = random.random()
    if kind < 0.03:
        words = random.choice(pools.reviews).split()
        return " ".join(changed(cropped(words, random, fewest=60, most=300), pools, random))
    text = random.choice(long_phrases if kind < 0.6 else pools.sentences)
    if random.random() < 0.2:
        other = random.choice(pools.phrases if random.random() < 0.6 else pools.sentences)
        text = text.rstrip(" .!?") + random.choice(JOINTS) + other
    words = text.split()
    if random.random() < 0.3:
        words = list(cropped(words, random, fewest=2, most=30))
    return " ".join(changed(words, pools, random))


def shard(pools: Pools, long_phrases: Sequence[str], number: int, size: int) -> list[str]:
    """Some variations, the same for the same number."""
    random = Random(number)
    return allowed([variation(pools, long_phrases, random) for _ in range(size)], pools.never)


def allowed(texts: Iterable[str], never: frozenset[str]) -> list[str]:
    """The texts that are none of those held out."""
    return [text for text in texts if fingerprint(text) not in never]


def all_texts(pools: Pools, count: int, workers: int) -> list[str]:
    """The texts themselves, every known word in a few frames, and `count` variations."""
    long_phrases = [text for text in pools.phrases if text.count(" ") >= 4] or pools.phrases
    framed = [frame.format(word) for word in pools.words for frame in FRAMES]
    written = [*pools.phrases, *pools.sentences, *pools.reviews, *framed]
    texts = dict.fromkeys(allowed(written, pools.never))
    sizes = [min(SHARD, count - start) for start in range(0, count, SHARD)]
    make = partial(shard, pools, long_phrases)
    if workers == 1:
        made = [make(number, size) for number, size in enumerate(sizes)]
    else:
        torch.set_num_threads(1)
        made = _made_by_many(make, sizes, workers)
    for part in made:
        texts.update(dict.fromkeys(part))
    return list(texts)


def _made_by_many(make: partial[list[str]], sizes: list[int], workers: int) -> list[list[str]]:
    global _make
    _make = make
    # Forked processes inherit the pools; sending them with each shard would take longer.
    with multiprocessing.get_context("fork").Pool(workers) as pool:
        return pool.starmap(_made, list(enumerate(sizes)), chunksize=1)


def _made(number: int, size: int) -> list[str]:
    return _make(number, size)


_make: partial[list[str]]
