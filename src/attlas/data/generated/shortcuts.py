"""shortcuts: neutral texts with a planted shortcut, so the tokens that decide the label are known.

There are three kinds. `token`: one of two triggers decides. `context`: a trigger decides only if
the text has the context word too. `pair`: both triggers occur, and their order decides. Other texts
have the label `NONE`. Bastings et al., "Will You Find These Shortcuts?", 2022.
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
    """Generate texts that a planted shortcut decides: LEFT or RIGHT, equally often.

    The spans are the deciding tokens: the trigger, the trigger and the context word, or both
    triggers. One text in eight is held out from training: `held_out` chooses those, the others, or
    both if None.
    """
    return _generate(count, seed, kind, _decided, held_out)


def generate_undecided(
    count: int, seed: int, kind: str = "token", *, held_out: bool | None = True
) -> list[Example]:
    """Generate texts labelled NONE: neutral ones, and those with an incomplete shortcut."""
    return _generate(count, seed, kind, _undecided, held_out)


def is_held_out(example: Example) -> bool:
    """Whether a text is held out from training."""
    return crc32(str(example.text).encode()) % 8 == 0


def decide(words: Sequence[str], kind: str) -> str:
    """Return the label of a text by the rule of its kind."""
    triggers = [word for word in words if word in TRIGGERS]
    if kind == "context" and CONTEXT not in words:
        return "NONE"
    if kind == "pair":
        return LABELS[1 + TRIGGERS.index(triggers[0])] if len(set(triggers)) == 2 else "NONE"
    return LABELS[1 + TRIGGERS.index(triggers[0])] if len(set(triggers)) == 1 else "NONE"


def write_neutral(random: Random) -> list[str]:
    """Write the words of a text that does not depend on the label."""
    return [word for _ in range(random.randint(*SENTENCES)) for word in _sentence(random) if word]


def plant(words: Sequence[str], planted: Sequence[str], random: Random) -> list[str]:
    """Insert words at random places, in the order given."""
    places = sorted(random.choices(range(len(words) + 1), k=len(planted)))
    result = list(words)
    for place, word in reversed(list(zip(places, planted, strict=True))):
        result.insert(place, word)
    return result


def planted_words(kind: str, label: str, random: Random) -> list[str]:
    """Choose the words to plant for a label, in an order that gives it."""
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


def _generate(
    count: int,
    seed: int,
    kind: str,
    planting: Callable[[Random, str], list[str]],
    held_out: bool | None,
) -> list[Example]:
    if kind not in KINDS:
        raise UnknownNameError("kind", kind, KINDS)
    random = Random(seed)
    examples: list[Example] = []
    while len(examples) < count:
        words = plant(write_neutral(random), planting(random, kind), random)
        example = make_example(words, kind)
        if held_out is None or is_held_out(example) == held_out:
            examples.append(example)
    return examples


def make_example(words: Sequence[str], kind: str) -> Example:
    """Make a text of words, with its label and the tokens that decide it."""
    label = decide(words, kind)
    deciding = {*TRIGGERS, *([CONTEXT] if kind == "context" else [])}
    spans = [] if label == "NONE" else _spans(words, deciding)
    return Example(" ".join(words), label, tuple(spans), {"kind": kind})


def _spans(words: Sequence[str], deciding: set[str]) -> list[Span]:
    ends = [len(" ".join(words[: number + 1])) for number in range(len(words))]
    return [
        (end - len(word), end) for word, end in zip(words, ends, strict=True) if word in deciding
    ]


def _sentence(random: Random) -> list[str]:
    start = random.choice((["on", "the", "day"], ["in", "a", "week"], [], []))
    relation = random.choice((_thing(random, random.choice(RELATIONS)), []))
    return [*start, *_thing(random), random.choice(DOINGS), *_thing(random), *relation]


def _thing(random: Random, *before: str) -> list[str]:
    article, description = random.choice(("the", "a")), random.choice((*DESCRIPTIONS, ""))
    return [*before, article, description, random.choice(THINGS)]
