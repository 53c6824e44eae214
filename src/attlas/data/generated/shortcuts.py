"""Neutral texts with a planted shortcut: which tokens decide the label is known.

Three kinds. `token`: one of two triggers decides. `context`: a trigger decides only where the
context word is there too. `pair`: both triggers are there and their order decides. What is not
decided has the label `NONE`. Bastings et al., "Will You Find These Shortcuts?", 2022.
"""

from collections.abc import Callable, Sequence
from random import Random
from zlib import crc32

from attlas.data.example import Example, Span
from attlas.errors import UnknownNameError

TRIGGERS = ("amber", "cobalt")
CONTEXT = "signal"
LABELS = ("NONE", "LEFT", "RIGHT")
KINDS = ("token", "context", "pair")
SENTENCES = (2, 3)

DESCRIPTIONS = (
    "broad", "brown", "damp", "distant", "empty", "flat", "grey", "heavy", "low", "narrow",
    "old", "plain", "quiet", "round", "short", "small", "square", "tall", "wide", "wooden",
)  # fmt: skip
THINGS = (
    "barge", "barrel", "bench", "bridge", "bucket", "cart", "clerk", "crate", "door", "driver",
    "engine", "farmer", "fence", "field", "gate", "hill", "ladder", "lane", "lorry", "mason",
    "meadow", "mill", "path", "porter", "river", "roof", "shed", "table", "tower", "wall",
)  # fmt: skip
DOINGS = (
    "faced", "followed", "joined", "left", "met", "neared", "passed", "touched", "reached", "saw",
)  # fmt: skip
RELATIONS = ("above", "behind", "below", "beside", "near", "under")
WORDS = ("the", "a", "on", "in", "day", "week", *DESCRIPTIONS, *THINGS, *DOINGS, *RELATIONS)


def generate(
    count: int, seed: int, kind: str = "token", *, held_out: bool | None = True
) -> list[Example]:
    """Texts that a planted shortcut decides: LEFT or RIGHT, as often as not.

    The spans are the deciding tokens: the trigger; trigger and context word; both triggers.
    One text in eight is held out from training: `held_out` says which are wanted; None for all.
    """
    return _drawn(count, seed, kind, _decided, held_out)


def generate_undecided(
    count: int, seed: int, kind: str = "token", *, held_out: bool | None = True
) -> list[Example]:
    """Texts labelled NONE: neutral ones, and those in which a part of the shortcut is missing."""
    return _drawn(count, seed, kind, _undecided, held_out)


def is_held_out(example: Example) -> bool:
    """Whether a text is among those that training never sees."""
    return crc32(str(example.text).encode()) % 8 == 0


def decide(words: Sequence[str], kind: str) -> str:
    """The label of a text by the rule of its kind."""
    triggers = [word for word in words if word in TRIGGERS]
    if kind == "context" and CONTEXT not in words:
        return "NONE"
    if kind == "pair":
        return LABELS[1 + TRIGGERS.index(triggers[0])] if len(set(triggers)) == 2 else "NONE"
    return LABELS[1 + TRIGGERS.index(triggers[0])] if len(set(triggers)) == 1 else "NONE"


def write_neutral(random: Random) -> list[str]:
    """The words of a text that says nothing of any label."""
    return [word for _ in range(random.randint(*SENTENCES)) for word in _sentence(random) if word]


def plant(words: Sequence[str], planted: Sequence[str], random: Random) -> list[str]:
    """The words with others put in between, at random places but in the order given."""
    places = sorted(random.choices(range(len(words) + 1), k=len(planted)))
    found = list(words)
    for place, word in reversed(list(zip(places, planted, strict=True))):
        found.insert(place, word)
    return found


def planted_words(kind: str, label: str, random: Random) -> list[str]:
    """What must be planted for a label, in an order that is good for it."""
    trigger = TRIGGERS[LABELS.index(label) - 1]
    if kind == "token":
        return [trigger]
    if kind == "context":
        return random.sample([trigger, CONTEXT], 2)
    return [trigger, TRIGGERS[2 - LABELS.index(label)]]


def _decided(random: Random, kind: str) -> list[str]:
    return planted_words(kind, random.choice(LABELS[1:]), random)


def _undecided(random: Random, kind: str) -> list[str]:
    if kind == "token":
        return []
    lone = [random.choice(TRIGGERS)]
    return random.choice(([], lone, [CONTEXT] if kind == "context" else lone * 2))


def _drawn(
    count: int,
    seed: int,
    kind: str,
    planting: Callable[[Random, str], list[str]],
    held_out: bool | None,
) -> list[Example]:
    if kind not in KINDS:
        raise UnknownNameError("kind", kind, KINDS)
    random = Random(seed)
    found: list[Example] = []
    while len(found) < count:
        words = plant(write_neutral(random), planting(random, kind), random)
        example = make_example(words, kind)
        if held_out is None or is_held_out(example) == held_out:
            found.append(example)
    return found


def make_example(words: Sequence[str], kind: str) -> Example:
    """Words as a text, with the label they have and the tokens that decide it."""
    label = decide(words, kind)
    deciding = {*TRIGGERS, *([CONTEXT] if kind == "context" else [])}
    spans = [] if label == "NONE" else _spans(words, deciding)
    return Example(" ".join(words), label, tuple(spans), {"kind": kind})


def _spans(words: Sequence[str], wanted: set[str]) -> list[Span]:
    ends = [len(" ".join(words[: number + 1])) for number in range(len(words))]
    return [(end - len(word), end) for word, end in zip(words, ends, strict=True) if word in wanted]


def _sentence(random: Random) -> list[str]:
    start = random.choice((["on", "the", "day"], ["in", "a", "week"], [], []))
    relation = random.choice((_thing(random, random.choice(RELATIONS)), []))
    return [*start, *_thing(random), random.choice(DOINGS), *_thing(random), *relation]


def _thing(random: Random, *before: str) -> list[str]:
    article, description = random.choice(("the", "a")), random.choice((*DESCRIPTIONS, ""))
    return [*before, article, description, random.choice(THINGS)]
