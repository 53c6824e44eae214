"""Which split of a data set is read, and which of its rows."""

import random
from collections.abc import Iterable, Sequence
from typing import TypeVar

from attlas.errors import UsageError

Item = TypeVar("Item")


def choose_split(name: str, split: str | None, available: Sequence[str]) -> str:
    """Return the split asked for; without one, the test split, else dev, else the first."""
    if split is None:
        return next((each for each in ("test", "dev") if each in available), available[0])
    if split.replace("-", "_") not in available:
        raise UsageError(f"{name} has no split {split!r}: allowed: {', '.join(available)}")
    return split.replace("-", "_")


def sample(items: Iterable[Item], count: int | None, seed: int) -> list[Item]:
    """Draw at most `count` items uniformly and keep their order; None takes all."""
    return sample_and_total(items, count, seed)[0]


def sample_and_total(items: Iterable[Item], count: int | None, seed: int) -> tuple[list[Item], int]:
    """What `sample` draws, and how many items it was drawn from."""
    if count is None:
        every = list(items)
        return every, len(every)
    if count < 0:
        raise UsageError(f"count is how many texts to take, 0 or more, not {count}")
    chance = random.Random(seed)
    kept: list[tuple[int, Item]] = []
    position = -1
    for position, item in enumerate(items):
        if len(kept) < count:
            kept.append((position, item))
        elif (place := chance.randrange(position + 1)) < count:
            kept[place] = (position, item)
    return [item for _, item in sorted(kept, key=lambda pair: pair[0])], position + 1
