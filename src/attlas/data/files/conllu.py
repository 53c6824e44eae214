"""Sentences with their syntax, from a CoNLL-U file: each word with its head and relation."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from attlas.data.files.lines import lines
from attlas.errors import UsageError, in_short

FIELDS = 10
_HEAD = re.compile(r"[0-9]{1,9}")


@dataclass(frozen=True)
class Sentence:
    """The words of a sentence; `heads` are positions among them, -1 for the root."""

    words: tuple[str, ...]
    heads: tuple[int, ...]
    relations: tuple[str, ...]  # without their subtypes: `nsubj` for `nsubj:pass`


def read_conllu(path: Path | str) -> list[Sentence]:
    """Read every sentence of a file.

    Words are syntactic words: a multiword token counts as the words it is made of. Empty nodes and
    comments are skipped. The error for a wrong line names it.
    """
    sentences = list(_sentences(Path(path)))
    if not sentences:
        raise UsageError(f"{path} has no sentence in CoNLL-U format")
    return sentences


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
    """Read a word, its head and relation; nothing for a multiword token or an empty node."""
    if len(fields) != FIELDS:
        raise UsageError(f"{place}: {len(fields)} fields between tabs, not {FIELDS}")
    number, form, head, relation = fields[0], fields[1], fields[6], fields[7]
    if "-" in number or "." in number:
        return []
    if number != str(expected) or not _HEAD.fullmatch(head):
        raise UsageError(
            f"{place}: word {in_short(number)!r} with head {in_short(head)!r}, where word "
            f"{expected} with the number of its head should be"
        )
    return [(form, int(head) - 1, relation.split(":")[0])]
