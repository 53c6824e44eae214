"""recall: pairs of a key and a value, then one of the keys; its value must come next.

The answer needs three tokens: the value, the key before it, and the key at the end. No other token
matters, because keys are distinct within a text, and so are values.
"""

import string
from collections.abc import Sequence
from random import Random

from attlas.data.example import Example, Span

KEYS = tuple(string.ascii_lowercase)
WORDS = (
    "ant ape bat bee cat cow cub dog doe eel elk emu ewe fox fly gnu hen hog ibis jay kid koi "
    "lark lion moth mule newt owl ox pig ram rat"
)
VALUES = tuple(WORDS.split())
FEWEST, MOST = 8, 16

Pair = tuple[str, str]


def generate(count: int, seed: int) -> list[Example]:
    """Generate texts of 8 to 16 pairs and a key, with the three spans that carry the label.

    The spans are those of the value, the key before it and the key at the end; `fields` holds them
    by name: "value", "key", "query".
    """
    random = Random(seed)
    return [_write(random) for _ in range(count)]


def draw_pairs(random: Random, count: int) -> list[Pair]:
    """Draw distinct keys, each with a value of its own."""
    return list(zip(random.sample(KEYS, count), random.sample(VALUES, count), strict=True))


def _write(random: Random) -> Example:
    pairs = draw_pairs(random, random.randint(FEWEST, MOST))
    return ask(pairs, random.randrange(len(pairs)))


def ask(pairs: Sequence[Pair], asked: int) -> Example:
    """Write the text that ends with the key of one of the pairs."""
    words = [word for pair in pairs for word in pair] + [pairs[asked][0]]
    places = _places(words)
    named = {"value": places[2 * asked + 1], "key": places[2 * asked], "query": places[-1]}
    return Example(" ".join(words), pairs[asked][1], tuple(named.values()), named)


def _places(words: Sequence[str]) -> list[Span]:
    places, start = [], 0
    for word in words:
        places.append((start, start + len(word)))
        start += len(word) + 1
    return places
