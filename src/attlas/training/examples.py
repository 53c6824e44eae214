"""Examples to train on: the texts of a set by name, a file or a list, in three parts."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

from attlas.data import Example, read_examples, texts
from attlas.data.example import Span
from attlas.data.generated import dates, facts, shortcuts
from attlas.data.sets.catalogue import DATA_SETS
from attlas.errors import UsageError

HELD_OUT = 0.1  # of the training texts, where there is no dev split
GENERATED = 20_000  # texts to train on
ASKED = 2_000  # generated texts to choose the epoch by, and as many to test on
QUESTIONS = ("facts", "qnli", "eraser_multirc")  # sets whose first text asks about the second
MADE = ("facts", "dates", "shortcuts")  # sets that are generated
PARTS_OF = {"sst_wiki": "deceptive_attention", "pronoun": "deceptive_attention"}  # tasks of a set

Labelled = list[tuple[Any, str]]


@dataclass(frozen=True)
class Parts:
    """Labelled texts to train on, to choose the best epoch by, and to test on."""

    train: Labelled
    dev: Labelled
    test: Labelled
    source: str
    notes: tuple[str, ...] = ()
    # The characters that people marked in texts to train on, or that decide a generated text.
    spans: Mapping[Any, tuple[Span, ...]] = field(default_factory=dict)

    @property
    def reads(self) -> str:
        """What an input is: a text, a pair, or a question with its text."""
        if isinstance(self.train[0][0], str):
            return "text"
        return "question" if self.source in QUESTIONS else "pair"


def read_parts(
    data: Any,
    *,
    dev: Any = None,
    test: Any = None,
    labels: Sequence[str] | None = None,
    count: int | None = None,
    seed: int = 0,
    spans: str | None = None,
) -> Parts:
    """Read the three parts of some data; only texts with one of these labels, if some are named.

    `spans` is the column of marked words in a file.

    A set by name has its own splits. Where there is no dev part, a tenth of the training texts is
    taken for it, always the same one. `count` draws so many texts to train on, by the seed.
    """
    name = _name(data)
    _check_asked(labels, count)
    if name in MADE:
        read = _generated(name, count or GENERATED, seed)
    elif name in DATA_SETS or name in PARTS_OF:
        read = [_split(name, split) for split in ("train", "dev", "test")]
    else:
        read = [read_examples(data, spans=spans).examples, [], []]
    for place, other in ((1, dev), (2, test)):
        if other is not None:
            read[place] = read_examples(other, spans=spans).examples
    marked = {each.text: each.spans for each in read[0] if each.spans}
    found = [_pairs(part) for part in read]
    train, chosen, tested = ([each for each in part if _has(each, labels)] for part in found)
    if labels:
        _check_labels(labels, found[0], name)
    notes: tuple[str, ...] = ()
    if not chosen:
        train, chosen = _apart(train)
        notes = (f"no dev texts: {len(chosen)} of the training texts choose the epoch",)
    if count is not None and name not in MADE:
        train = Random(seed).sample(train, min(count, len(train)))
    parts = Parts(train, chosen, tested, name, notes, marked)
    _check_learnable(parts)
    return parts


def _check_learnable(parts: Parts) -> None:
    """Refuse what has nothing to learn, or asks for a label that is nowhere learned."""
    known = {label for _, label in parts.train}
    if len(known) < 2:
        raise UsageError(
            f"{parts.source} has texts of fewer than two labels to train on "
            f"({len(parts.train)} to train on, {len(parts.dev)} to choose the epoch by): there is "
            "nothing to learn"
        )
    if parts.source == "dates":  # each has an answer of its own
        return
    for what, others in (("choose the epoch by", parts.dev), ("test on", parts.test)):
        new = sorted({label for _, label in others} - known)
        if new:
            raise UsageError(
                f"{parts.source} has texts to {what} with the label {new[0]!r}, which none of the "
                f"{len(parts.train)} texts to train on has: train on more of them"
            )


def _check_asked(labels: Sequence[str] | None, count: int | None) -> None:
    if count is not None and count < 1:
        raise UsageError(f"count is 1 or more, not {count}")
    if labels is not None and not labels:
        raise UsageError("labels are two or more, or not given")


def _name(data: Any) -> str:
    if not isinstance(data, (str, Path)):
        return f"a {type(data).__name__}"
    key = str(data).lower().replace("-", "_")
    return key if key in DATA_SETS or key in MADE or key in PARTS_OF else str(data)


def _split(name: str, split: str) -> list[Example]:
    chosen, part = (PARTS_OF[name], f"{name}_{split}") if name in PARTS_OF else (name, split)
    return texts(chosen, split=part) if part in DATA_SETS[chosen].splits else []


def _generated(name: str, count: int, seed: int) -> list[list[Example]]:
    if name == "dates":
        made = [dates.generate_for_training(count, seed)]
        return made + [dates.generate(ASKED, other) for other in (1, 2)]
    if name == "facts":
        made = [facts.generate(count, seed, held_out=False)]
        return made + [facts.generate(ASKED, other) for other in (1, 2)]
    made = [shortcuts.generate(count, seed, held_out=False)]
    return made + [shortcuts.generate(ASKED, other) for other in (1, 2)]


def _pairs(examples: Sequence[Example]) -> Labelled:
    found = [(each.text, each.label) for each in examples if each.label is not None]
    wrong = next((text for text, _ in found if not isinstance(text, (str, tuple))), None)
    if wrong is not None:
        raise UsageError("a text to train on is a string or a pair of strings")
    return found


def _has(each: tuple[Any, str], labels: Sequence[str] | None) -> bool:
    return labels is None or each[1] in labels


def _check_labels(labels: Sequence[str], examples: Labelled, name: str) -> None:
    known = sorted({label for _, label in examples})
    unknown = [label for label in labels if label not in known]
    if unknown:
        raise UsageError(f"{name} has no label {unknown[0]!r}: it has {', '.join(known)}")


def _apart(examples: Labelled) -> tuple[Labelled, Labelled]:
    """A fixed tenth of the texts apart from the others."""
    chosen = set(Random(0).sample(range(len(examples)), max(1, round(HELD_OUT * len(examples)))))
    kept = [each for number, each in enumerate(examples) if number not in chosen]
    return kept, [examples[number] for number in sorted(chosen)]
