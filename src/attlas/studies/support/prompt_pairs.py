"""Pairs of prompts that differ in one respect, and the two answers that go with them."""

import json
from dataclasses import dataclass
from pathlib import Path
from random import Random

from attlas.data.generated.recall import ask, draw_pairs
from attlas.errors import UsageError

FEMALE = (
    *("nurse", "maid", "secretary", "dancer", "teacher", "librarian", "nanny", "cook", "model"),
    *("receptionist", "housekeeper", "hairdresser", "waitress", "singer"),
)
MALE = (
    *("doctor", "pilot", "farmer", "soldier", "driver", "guard", "mechanic", "lawyer", "captain"),
    *("carpenter", "engineer", "butcher", "plumber", "boss", "chief", "judge"),
)
TEMPLATES = (
    "The {} said that",
    "The {} smiled because",
    "The {} went home early because",
    "The {} was late, and everybody knew that",
)


@dataclass(frozen=True)
class PromptPair:
    """Two prompts, the answer that the second one asks for, and the one that the first does."""

    one: str
    other: str
    answer: str
    instead_of: str
    kind: str = ""


def read_pairs(prompts: str, count: int, seed: int) -> list[PromptPair]:
    """The pairs by the name of a set, or from a file."""
    if prompts == "recall":
        return recall_pairs(count, seed)
    if prompts == "professions":
        every = _profession_pairs()
        return Random(seed).sample(every, min(count, len(every)))
    try:
        lines = Path(prompts).read_text("utf-8").splitlines()
        return [PromptPair(**json.loads(line)) for line in lines if line.strip()][:count]
    except (OSError, ValueError, TypeError) as problem:
        raise UsageError(f"{prompts} cannot be read as pairs of prompts: {problem}") from problem


def _profession_pairs() -> list[PromptPair]:
    """A profession against the word for the other gender, and the pronoun of the latter."""
    return [
        PromptPair(template.format(word), template.format(person), answer, instead_of, kind)
        for template in TEMPLATES
        for words, person, answer, instead_of, kind in (
            (FEMALE, "man", " he", " she", "female"),
            (MALE, "woman", " she", " he", "male"),
        )
        for word in words
    ]


def recall_pairs(count: int, seed: int) -> list[PromptPair]:
    """Texts whose key stands before another value in the second prompt: known to be looked up."""
    random, made = Random(seed), []
    for _ in range(count):
        pairs = draw_pairs(random, 8)
        one, other = random.sample(range(8), 2)
        swapped = list(pairs)
        swapped[one], swapped[other] = (
            (pairs[other][0], pairs[one][1]),
            (pairs[one][0], pairs[other][1]),
        )
        texts = str(ask(pairs, one).text), str(ask(swapped, other).text)
        made.append(PromptPair(*texts, pairs[other][1], pairs[one][1]))
    return made
