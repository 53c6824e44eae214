"""Comparison: several explanations side by side, word by word, and how far they agree."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from itertools import combinations
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from attlas.errors import UsageError
from attlas.results.explanation import Explanation
from attlas.results.support.files import plain
from attlas.results.support.frames import Frame, frame
from attlas.results.support.pictures import picture_arrays, picture_rows, read_pictures
from attlas.results.support.result import Result
from attlas.shapes import MethodScores
from attlas.tokens import Span
from attlas.views.units import visible

READING = (
    "Each explanation is scaled to its own strongest word, and special tokens are left out. τ is "
    "near 1 if two order the words alike, near 0 if they have nothing in common, below 0 if one "
    "turns the other around. That two agree does not show that either is right."
)
MANY = "explanations"  # what differs, if it is more than one thing
TEXTS = (
    "Of texts that differ, words are compared that stand in both or in each other's place; the "
    "others have no partner."
)
MIXED = "Where only one of two says for or against, strengths are compared."


@dataclass(frozen=True)
class ComparedWord:
    """A word: its text in the first explanation that has it, and its tokens in each.

    Where the texts differ, `texts` and `spans` say what stands in its place in each of them. A text
    that has nothing there has no positions, an empty text and no span.
    """

    text: str
    segment: str
    span: Span | None
    positions: tuple[tuple[int, ...], ...]  # for each explanation
    texts: tuple[str, ...] = ()
    spans: tuple[Span | None, ...] = ()


@dataclass(frozen=True)
class PairAgreement:
    """How far two explanations agree, by their numbers in the list.

    `tau` is Kendall's τ-b over the `words` that both have, None where one of them scores all alike.
    `overlap` is the share of the strongest words that they have in common, and `chance` that of two
    random orders. `by` says what was compared: the scores, or their strength where only one has a
    sign.
    """

    one: int
    other: int
    tau: float | None
    overlap: float
    chance: float
    by: str
    words: int


@dataclass(frozen=True, eq=False)
class Comparison(Result):
    """Several explanations side by side, word by word, and how far every two agree.

    `scores` has a row for each explanation and a column for each word: the sum of its tokens, and
    NaN where its text does not have the word.
    `differs` says what is compared: methods, targets, models, texts or explanations. Maps are left
    out, and only the first explanation keeps its pictures.
    """

    view_kind: ClassVar[str] = "comparison"
    record_kind: ClassVar[str] = "comparison"

    explanations: tuple[Explanation, ...]
    names: tuple[str, ...]
    words: tuple[ComparedWord, ...]
    scores: MethodScores
    agreement: tuple[PairAgreement, ...]
    top: int  # how many of the strongest words are compared
    differs: str = MANY
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        shape = (len(self.explanations), len(self.words))
        if self.scores.shape != shape or len(self.names) != shape[0]:
            raise UsageError(
                f"{shape[0]} explanations of {shape[1]} words, but {len(self.names)} names and "
                f"scores of shape {self.scores.shape}"
            )
        pairs = list(combinations(range(shape[0]), 2))
        if [(each.one, each.other) for each in self.agreement] != pairs:
            raise UsageError(f"agreement must be of every two explanations, in order: {pairs}")

    def __len__(self) -> int:
        return len(self.explanations)

    def __getitem__(self, index: int) -> Explanation:
        return self.explanations[index]

    @property
    def limits(self) -> tuple[float, ...]:
        """The largest absolute score of each explanation, which its colours are scaled to."""
        sizes = np.nan_to_num(np.abs(self.scores))
        return tuple(float(each) for each in sizes.max(axis=1, initial=0.0))

    @property
    def headline(self) -> str:
        """The question that it answers."""
        if self.differs == "texts":  # which are too long to be named in a question
            return f"Are these {len(self)} texts explained alike?"
        if len(self) == 2 and self.differs != MANY:
            return f"Do {visible(self.names[0])} and {visible(self.names[1])} agree?"
        return f"Do these {len(self)} {self.differs} agree?"

    def difference(self, one: int = 0, other: int = 1) -> Frame:
        """One row for each word of both: its share of the strongest in each, and their difference.

        If only one of the two has a sign, both are taken without it.
        """
        for index in (one, other):
            if index not in range(len(self)):
                raise UsageError(f"no explanation {index}: there are 0 to {len(self) - 1}")
        rows = self.scores[[one, other]]
        limits = np.array([self.limits[one], self.limits[other]])
        signed = {self.explanations[index].origin.shows_sides for index in (one, other)}
        shares = (np.abs(rows) if len(signed) > 1 else rows) / np.where(limits, limits, 1)[:, None]
        shared = np.isfinite(rows).all(axis=0)
        words = [word.text for word, is_shared in zip(self.words, shared, strict=True) if is_shared]
        columns = {"word": words, "one": shares[0, shared], "other": shares[1, shared]}
        return frame({**columns, "difference": columns["one"] - columns["other"]})

    def to_pandas(self) -> Frame:
        """One row for each word, and a column of scores for each explanation."""
        columns = dict(zip(self.names, self.scores, strict=True))
        about = {
            "word": [word.text for word in self.words],
            "segment": [word.segment for word in self.words],
        }
        return frame({**about, **columns})

    def agreement_table(self) -> Frame:
        """One row for every two explanations: τ, the overlap of the strongest words, chance."""
        rows = [
            asdict(each) | {"one": self.names[each.one], "other": self.names[each.other]}
            for each in self.agreement
        ]
        return frame(rows, columns=list(PairAgreement.__dataclass_fields__))

    def to_dict(self) -> dict[str, Any]:
        """Everything but maps and pictures, as JSON."""
        return {
            "explanations": [each.to_dict() for each in self.explanations],
            "names": list(self.names),
            "words": [plain(asdict(word)) for word in self.words],
            "scores": [_numbers(row) for row in self.scores],
            "agreement": [asdict(each) for each in self.agreement],
            "top": self.top,
            "differs": self.differs,
            "notes": list(self.notes),
        }

    @classmethod
    def from_dict(cls, record: Mapping[str, Any]) -> "Comparison":
        """Read what `to_dict` returned."""
        return cls(
            tuple(Explanation.from_dict(each) for each in record["explanations"]),
            tuple(record["names"]),
            tuple(_read_word(each) for each in record["words"]),
            np.array(record["scores"], dtype=np.float64),
            tuple(PairAgreement(**each) for each in record["agreement"]),
            record["top"],
            record["differs"],
            tuple(record["notes"]),
        )

    def _to_record(self) -> tuple[dict[str, Any], dict[str, Any]]:
        return self.to_dict(), picture_arrays(self.explanations[0].pictures)

    @classmethod
    def _from_record(cls, header: Mapping[str, Any], arrays: Mapping[str, Any]) -> "Comparison":
        read = cls.from_dict(header)
        first, *others = read.explanations
        pictured = replace(first, pictures=read_pictures(arrays))
        return replace(read, explanations=(pictured, *others))

    def payload(self) -> dict[str, Any]:
        """What a page, a notebook or a terminal draws; its tokens are the words."""
        first, signs = self.explanations[0], {each.origin.shows_sides for each in self.explanations}
        models = {each.origin.model for each in self.explanations}
        differ = any(word.texts for word in self.words)
        reading = [READING, *([TEXTS] if differ else []), *([MIXED] if len(signs) > 1 else [])]
        return {
            "kind": self.view_kind,
            "version": 1,
            "headline": self.headline,
            "model": first.origin.model if len(models) == 1 else None,
            "reading": " ".join(reading),
            "signed": signs == {True},
            "tokens": [_word_row(word) for word in self.words],
            "sources": dict(first.tokens.sources),
            "pictures": picture_rows(first.tokens, first.pictures),
            "rows": [self._row(index) for index in range(len(self))],
            "pairs": [asdict(each) for each in self.agreement],
            "top": self.top,
            "versions": dict(first.origin.versions),
            "notes": list(self.notes),
            "code": self.code(),
        }

    def _row(self, index: int) -> dict[str, Any]:
        """What is drawn of one explanation."""
        each, scores = self.explanations[index], self.scores[index]
        size = float(np.abs(each.scores.astype(np.float64)).sum())
        special = float(np.abs(each.scores[list(each.tokens.special)].astype(np.float64)).sum())
        own = self._own_words(index) if any(word.texts for word in self.words) else None
        return {
            "name": self.names[index],
            "model": each.origin.model,
            "method": each.method,
            "target": asdict(each.target),
            "signed": each.origin.shows_sides,
            "scores": _numbers(scores),
            "limit": self.limits[index],
            "special": special / size if size else 0.0,
            "words": own,
            "sources": dict(each.tokens.sources) if own else None,
        }

    def _own_words(self, index: int) -> list[dict[str, Any] | None]:
        """The words as they stand in the text of one explanation; None where it has none."""
        found: list[dict[str, Any] | None] = []
        for word in self.words:
            text, span = word.text, word.span
            if word.texts:
                text, span = word.texts[index], word.spans[index]
            start, end = span or (None, None)
            here = {"text": text, "start": start, "end": end}
            found.append(here if word.positions[index] else None)
        return found

    def code(self) -> str:
        """The Python lines that compute this again; you must fill in a picture yourself."""
        lines: list[str] = []
        for number, each in enumerate(self.explanations, 1):
            *setting, last = each.code().splitlines()
            lines += [line for line in setting if line not in lines[-len(setting) :]]
            lines.append(f"e{number} = {last}")
        made = ", ".join(f"e{number}" for number in range(1, len(self) + 1))
        return "\n".join([*dict.fromkeys(lines), f"attlas.compare([{made}])"])

    def _page_title(self) -> str:
        return self.headline

    def __repr__(self) -> str:
        told = ", ".join(
            f"{self.names[each.one]} and {self.names[each.other]} τ "
            + ("undefined" if each.tau is None else f"{each.tau:.2f}")
            for each in self.agreement[:3]
        )
        return f"Comparison({visible(told)}{', …' if len(self.agreement) > 3 else ''})"


def _numbers(row: NDArray[np.float64]) -> list[float | None]:
    """A row of scores as JSON, which has no NaN."""
    return [None if np.isnan(each) else float(each) for each in row]


def _word_row(word: ComparedWord) -> dict[str, Any]:
    start, end = word.span or (None, None)
    row = {"text": word.text, "label": word.text, "special": False, "segment": word.segment}
    return {**row, "start": start, "end": end, "score": 0.0}


def _read_word(record: Mapping[str, Any]) -> ComparedWord:
    span = record["span"]
    return ComparedWord(
        record["text"],
        record["segment"],
        (span[0], span[1]) if span else None,
        tuple(tuple(each) for each in record["positions"]),
        tuple(record["texts"]),
        tuple((each[0], each[1]) if each else None for each in record["spans"]),
    )
