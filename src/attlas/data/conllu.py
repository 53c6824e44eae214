"""Sentences with their syntax, from a CoNLL-U file: words, and for each its head and relation."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from attlas.data.files.lines import lines
from attlas.errors import UsageError

FIELDS = 10


@dataclass(frozen=True)
class Sentence:
    """The words of a sentence; `heads` are places among them, -1 for what hangs on no word."""

    words: tuple[str, ...]
    heads: tuple[int, ...]
    relations: tuple[str, ...]  # without their subtypes: `nsubj` for `nsubj:pass`


def read_conllu(path: Path | str) -> list[Sentence]:
    """Every sentence of a file.

    Words are the syntactic ones, so the parts of a multiword token count and the token does not;
    empty nodes and comments are passed over. The error for a line that is none says which.
    """
    found = list(_sentences(Path(path)))
    if not found:
        raise UsageError(f"{path} has no sentence in the CoNLL-U form")
    return found


def _sentences(path: Path) -> Iterator[Sentence]:
    rows: list[tuple[str, int, str]] = []
    for number, line in enumerate([*lines(path), ""], 1):
        if line.startswith("#"):
            continue
        if line.strip():
            rows += _word(line.split("\t"), f"{path}, line {number}", len(rows) + 1)
        elif rows:
            words, heads, relations = zip(*rows, strict=True)
            if any(head >= len(rows) for head in heads):
                raise UsageError(f"{path}, before line {number}: a head is not in the sentence")
            yield Sentence(words, heads, relations)
            rows = []


def _word(fields: list[str], place: str, expected: int) -> list[tuple[str, int, str]]:
    """The word of a line, its head and relation; none for a multiword token or an empty node."""
    if len(fields) != FIELDS:
        raise UsageError(f"{place}: {len(fields)} fields parted by tabs, not {FIELDS}")
    number, form, head, relation = fields[0], fields[1], fields[6], fields[7]
    if "-" in number or "." in number:
        return []
    if number != str(expected) or not head.isdecimal():
        raise UsageError(
            f"{place}: word {number!r} with head {head!r}, where word {expected} with the number "
            "of its head should be"
        )
    return [(form, int(head) - 1, relation.split(":")[0])]
