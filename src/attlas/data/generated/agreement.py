"""agreement: the beginning of a sentence up to its verb, which is singular or plural.

Only the first noun decides. Other nouns, some of the other number, come between it and the verb.
"""

from random import Random

from attlas.data.example import Example

LABELS = ("plural", "singular")
NOUNS = (
    *("key", "cabinet", "farmer", "doctor", "lawyer", "senator", "pilot", "teacher", "student"),
    *("author", "painter", "singer", "driver", "waiter", "guard", "king", "queen", "tree", "river"),
    *("bridge", "garden", "window", "table", "letter", "picture", "story", "song", "dog", "cat"),
    *("horse", "ship", "car", "house", "tower", "road", "island", "lamp", "door", "machine"),
)
ENDINGS = {"story": "stories"}
ADJECTIVES = (
    *("old", "new", "tall", "small", "quiet", "famous", "red", "green", "strange", "heavy"),
    *("clever", "young", "broken", "distant", "bright", "simple"),
)
PREPOSITIONS = ("near", "behind", "with", "beside", "under", "above", "of", "before")
VERBS = ("liked", "saw", "found", "painted", "sold", "followed", "remembered", "moved")
MOST_BETWEEN = 3  # nouns between the first and the verb


def generate(count: int, seed: int) -> list[Example]:
    """Generate beginnings of sentences; the span is the noun that decides."""
    random = Random(seed)
    return [_write(random) for _ in range(count)]


def _write(random: Random) -> Example:
    number = random.choice(LABELS)
    words = ["the", *_adjectives(random)]
    place = len(words)
    words.append(_noun(random, number))
    between = random.randint(0, MOST_BETWEEN)
    for _ in range(between):
        words += _phrase(random)
    start = sum(len(word) + 1 for word in words[:place])
    span = (start, start + len(words[place]))
    return Example(" ".join(words), number, (span,), {"between": between})


def _phrase(random: Random) -> list[str]:
    """A phrase with a noun of any number: after a preposition, or in a relative clause."""
    noun = _noun(random, random.choice(LABELS))
    if random.random() < 0.3:
        return ["that", "the", noun, random.choice(VERBS)]
    return [random.choice(PREPOSITIONS), "the", *_adjectives(random), noun]


def _adjectives(random: Random) -> list[str]:
    return [random.choice(ADJECTIVES)] if random.random() < 0.4 else []


def _noun(random: Random, number: str) -> str:
    noun = random.choice(NOUNS)
    return noun if number == "singular" else ENDINGS.get(noun, f"{noun}s")
