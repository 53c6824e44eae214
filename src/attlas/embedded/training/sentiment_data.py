"""Read the training text of the embedded sentiment model and drops what would leak its tests."""

import gzip
import json
import lzma
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from hashlib import blake2b
from pathlib import Path
from typing import Any, NamedTuple

from attlas.data import texts

# A shorter held-out text ("brilliant") is in everything: it counts only as a whole text.
FEWEST_LETTERS = 16
# A training text this long inside a held-out one is a leak as well.
LONG_PIECE = 32
LONGEST_TEXT = 2500
# From the treebank's five grades to how likely the text is called positive.
GRADES = (0.02, 0.2, 0.5, 0.8, 0.98)
SURE = {0: 0.02, 1: 0.98, "NEG": 0.02, "POS": 0.98}
LABELS = ("NEGATIVE", "POSITIVE")
SENTENCES = Path(__file__).parent / "sentiment_sentences.txt"
YELP = ("50words", "100words", "200words", "part7")


class TrainingText(NamedTuple):
    """A training text, how likely it is positive, and the text it was edited from, if any."""

    source: str
    text: str
    target: float
    origin: str = ""


def read(path: Path) -> Iterator[dict[str, Any]]:
    """The rows of a jsonl file, packed or not."""
    packed = path.with_name(path.name + ".gz")
    with gzip.open(packed, "rt") if packed.exists() else path.open() as lines:
        yield from map(json.loads, lines)


def plain(text: str) -> str:
    """The text on one line, without the marks of its page."""
    return " ".join(text.replace("<br />", " ").replace("\\/", "/").split())


def letters(text: str) -> str:
    """What is compared between texts: lower-case letters alone."""
    return re.sub("[^a-z]", "", text.lower())


def fingerprint(text: str) -> str:
    """What stands for a held-out text where it must not be read."""
    return blake2b(letters(text).encode(), digest_size=8).hexdigest()


def treebank_rows(folder: Path) -> Iterator[TrainingText]:
    """Every sentence, phrase and word of the graded trees, once."""
    seen = set()
    for tree in read(folder / "sst5" / "train.jsonl"):
        words = tree["tokens"]
        alone = ([place, place + 1, grade] for place, grade in enumerate(tree["token_labels"]))
        whole = [0, len(words), tree["label"]]
        for start, end, grade in [whole, *tree["phrase_labels"], *alone]:
            text = plain(" ".join(words[start:end]))
            if text.lower() not in seen:
                seen.add(text.lower())
                yield TrainingText("sst5", text, GRADES[grade])


def edited_rows(folder: Path) -> Iterator[TrainingText]:
    """Reviews and their edited versions of the other sentiment; each names the other as origin."""
    for pair in read(folder / "imdb_cad" / "train.jsonl"):
        text, revised = plain(pair["text"]), plain(pair["revised_text"])
        yield TrainingText("imdb_cad", text, SURE[pair["label"]], revised)
        yield TrainingText("imdb_cad", revised, SURE[pair["revised_label"]], text)


def training_rows(folder: Path) -> Iterator[TrainingText]:
    """All training text; a phrase that two sources share comes from the first."""
    yield from treebank_rows(folder)
    for name in ("sst2", "imdb", "eraser_movies"):
        for row in read(folder / name / "train.jsonl"):
            yield TrainingText(name, plain(row["text"]), SURE[row["label"]])
    yield from edited_rows(folder)
    for part in YELP:
        for row in read(folder / "yelp_hat" / f"{part}.jsonl"):
            yield TrainingText("yelp_hat", plain(" ".join(row["tokens"])), SURE[row["label"]])


def made_sentences() -> Iterator[TrainingText]:
    """The sentences made to try negation, contrast and comparison, which are their sources."""
    source = ""
    for line in SENTENCES.read_text().splitlines():
        sign, _, text = line.partition(" ")
        if sign == "#":
            source = text
        elif line:
            yield TrainingText(source, text, {"-": 0.0, "+": 1.0}[sign])


def shipped() -> Iterator[TrainingText]:
    """What the model is measured on that comes with it: reviews for or against, and sentences."""
    for name in ("reviews", "reviews_hard"):
        for each in texts(name):
            if each.label in LABELS:
                yield TrainingText(name, str(each.text), LABELS.index(each.label))
    yield from made_sentences()


def held_out_texts(folder: Path) -> Iterator[str]:
    """Everything that a training text may not hold."""
    yield from (row.text for row in shipped())
    for file in ("sst2/dev", "sst5/dev", "sst5/test", "imdb/test", "imdb_cad/dev", "imdb_cad/test"):
        yield from _texts(folder / f"{file}.jsonl")
    for file in ("eraser_movies/val", "eraser_movies/test"):
        yield from _texts(folder / f"{file}.jsonl")


def _texts(path: Path) -> Iterator[str]:
    for row in read(path):
        yield plain(row["text"] if "text" in row else " ".join(row["tokens"]))
        if "revised_text" in row:
            yield plain(row["revised_text"])


def by_opening(texts: Iterable[str]) -> dict[str, list[str]]:
    """Texts, as letters, by their first letters."""
    index: dict[str, list[str]] = {}
    for text in texts:
        index.setdefault(text[:FEWEST_LETTERS], []).append(text)
    return index


def contained(index: Mapping[str, Sequence[str]], text: str) -> set[str]:
    """The texts of an index that this one holds."""
    return {
        each
        for place in range(len(text) - FEWEST_LETTERS + 1)
        for each in index.get(text[place : place + FEWEST_LETTERS], ())
        if text.startswith(each, place)
    }


def without_leaks(
    rows: Iterable[TrainingText], held_out: Iterable[str]
) -> tuple[list[TrainingText], list[TrainingText]]:
    """The rows that share nothing with the held-out texts, and the rows dropped."""
    rows, hidden = list(rows), {letters(text) for text in held_out}
    index = by_opening(text for text in hidden if len(text) >= FEWEST_LETTERS)
    spelled = [letters(f"{row.text} {row.origin}") for row in rows]
    pieces = {text for text in map(letters, (row.text for row in rows)) if len(text) >= LONG_PIECE}
    opening = by_opening(pieces)
    inside = {piece for text in hidden for piece in contained(opening, text)}
    kept: list[TrainingText] = []
    dropped: list[TrainingText] = []
    for row, both in zip(rows, spelled, strict=True):
        own = letters(row.text)
        leaks = own in hidden or own in inside or bool(contained(index, both))
        (dropped if leaks else kept).append(row)
    return kept, dropped


def first_of_each(rows: Iterable[TrainingText]) -> Iterator[TrainingText]:
    """The rows without repeated texts, cut to what the model can read."""
    seen = set()
    for row in rows:
        spelled = row.text.lower()
        if letters(spelled) and spelled not in seen:
            seen.add(spelled)
            yield row._replace(text=row.text[:LONGEST_TEXT], origin="")


def counts(**lists: Sequence[TrainingText]) -> dict[str, dict[str, int]]:
    """How many rows of each source are in each list."""
    return {name: dict(Counter(row.source for row in rows)) for name, rows in lists.items()}


def examined(folder: Path, *, reviews: int) -> Iterator[TrainingText]:
    """What the model is measured on: the SST-2 dev set and the first reviews of IMDB's test."""
    yield from (
        TrainingText("sst2", row["text"], row["label"]) for row in read(folder / "sst2/dev.jsonl")
    )
    tests = [
        TrainingText("imdb", plain(row["text"]), row["label"])
        for row in read(folder / "imdb/test.jsonl")
    ]
    for label in (0, 1):
        yield from [row for row in tests if row.target == label][: reviews // 2]


def write_rows(rows: Iterable[TrainingText], path: Path) -> None:
    """Write rows as packed lines."""
    with lzma.open(path, "wt") as lines:
        lines.writelines(json.dumps(row[:3], ensure_ascii=False) + "\n" for row in rows)


def read_rows(path: Path) -> list[TrainingText]:
    """Read the rows that `write_rows` wrote."""
    with lzma.open(path, "rt") as lines:
        return [TrainingText(*json.loads(line)) for line in lines]
