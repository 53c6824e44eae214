"""Explanation: the scores of one method for one input, and how to compute them again."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from os import PathLike
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from attlas import views
from attlas.errors import UnknownNameError, UsageError
from attlas.results.maps import Maps
from attlas.results.support.files import plain
from attlas.results.support.frames import Frame, frame
from attlas.results.support.licence import Licence
from attlas.results.support.origin import Origin, TargetRecord, why
from attlas.results.support.pictures import (
    check_pictures,
    picture_arrays,
    picture_rows,
    read_pictures,
)
from attlas.results.support.result import Result
from attlas.results.support.sums import Sink, find_sinks, removal_note, score_sum
from attlas.results.support.words import segment_units, token_rows, word_units
from attlas.shapes import Picture, TokenVector
from attlas.tokens import Tokens
from attlas.views.map_codes import BYTES
from attlas.views.units import visible

__all__ = ["LEVELS", "Explanation", "Origin", "TargetRecord"]

LEVELS = ("tokens", "words", "segments")


@dataclass(frozen=True, eq=False)
class Explanation(Result):
    """A score for each token of one input.

    Special tokens have scores too; `tokens.special` marks them. `prediction` lists the model's most
    likely answers. `notes` holds what a reader must know, such as a text that was cut. The patches
    of a picture are tokens of a segment of their own; its last ones fill `tokens.grids[segment]`.
    """

    view_kind: ClassVar[str] = "explanation"
    record_kind: ClassVar[str] = "explanation"

    tokens: Tokens
    scores: TokenVector
    target: TargetRecord
    origin: Origin
    prediction: tuple[Mapping[str, Any], ...] = ()
    notes: tuple[str, ...] = ()
    maps: Maps | None = None
    pictures: Mapping[str, Picture] = field(
        default_factory=dict
    )  # by segment, as the model saw them
    details: Mapping[str, Any] = field(
        default_factory=dict
    )  # what else the method computed, as JSON
    licence: Licence | None = None  # whether the largest scores are where it matters, if asked for
    true_label: str | None = None  # of the text, if it was given as an `Example`

    def __post_init__(self) -> None:
        if self.scores.shape != (len(self.tokens),):
            raise UsageError(f"{len(self.tokens)} tokens but scores of shape {self.scores.shape}")
        if self.scores.dtype.kind != "f" or not np.isfinite(self.scores).all():
            raise UsageError("scores must be finite floating-point numbers")
        check_pictures(self.pictures)
        object.__setattr__(self, "prediction", tuple(plain(each) for each in self.prediction))
        object.__setattr__(self, "details", plain(self.details))

    @property
    def method(self) -> str:
        """The name of the method."""
        return self.origin.method

    @property
    def warning(self) -> str:
        """Why the scores must not be relied on; empty if the method has no doubt."""
        return str(self.details.get("warning", ""))

    @property
    def headline(self) -> str:
        """The question that it answers."""
        return why(self.target, self.prediction, word_units(self.tokens))

    @property
    def segments(self) -> tuple[str, ...]:
        """The segment of each token, such as source and prefix, or the two texts of a pair."""
        return self.tokens.segments

    @property
    def sinks(self) -> tuple[Sink, ...]:
        """First tokens that hold more than half of the score; empty for signed scores."""
        return () if self.origin.signed else find_sinks(self.tokens, self.scores)

    def without_sinks(self) -> "Explanation":
        """A copy in which sinks score zero; a note says how much they held. It has no licence."""
        if not self.sinks:
            return self
        scores = self.scores.copy()
        scores[[sink.position for sink in self.sinks]] = 0
        return replace(
            self,
            scores=scores,
            origin=self.origin.followed_by(".without_sinks()"),
            notes=(*self.notes, removal_note(self.tokens, self.sinks)),
            licence=None,
        )

    def aggregate(self, level: str = "words") -> Frame:
        """Return one row for each word, in text order, with the sum of its tokens' scores.

        `level="segments"` gives one row for each segment: a message of a chat, a text of a pair.
        `content` is the part of its score that is not on special tokens or markup.
        """
        if level not in LEVELS:
            raise UnknownNameError("level", level, LEVELS)
        if level == "tokens":
            return self.to_pandas()
        if level == "segments":
            return self._by_segment()
        columns = ["word", "score", "special", "segment", "positions"]
        return frame(self._words(), columns=columns)

    def _words(self) -> list[dict[str, Any]]:
        return [
            {
                "word": unit.text,
                "score": float(self.scores[list(unit.positions)].sum(dtype=np.float64)),
                "special": unit.special,
                "segment": unit.segment,
                "positions": unit.positions,
            }
            for unit in word_units(self.tokens)
        ]

    def _by_segment(self) -> Frame:
        content = np.where(self.tokens.special, 0.0, self.scores)
        rows = [
            {
                "segment": unit.segment,
                "score": float(self.scores[list(unit.positions)].sum(dtype=np.float64)),
                "content": float(content[list(unit.positions)].sum(dtype=np.float64)),
                "positions": unit.positions,
            }
            for unit in segment_units(self.tokens)
        ]
        return frame(rows, columns=["segment", "score", "content", "positions"])

    def to_pandas(self) -> Frame:
        """One row for each token."""
        spans = [span or (None, None) for span in self.tokens.offsets]
        return frame(
            {
                "token": list(self.tokens),
                "score": self.scores,
                "special": self.tokens.special,
                "segment": self.tokens.segments,
                "start": [start for start, _ in spans],
                "end": [end for _, end in spans],
            }
        ).astype({"start": "Int64", "end": "Int64"})

    def to_dict(self) -> dict[str, Any]:
        """Everything but the maps and the picture, as JSON."""
        return {
            "tokens": self.tokens.to_dict(),
            "scores": [float(score) for score in self.scores],
            **self._header(),
        }

    def _header(self) -> dict[str, Any]:
        return {
            "target": asdict(self.target),
            "origin": self.origin.to_dict(),
            "prediction": [dict(choice) for choice in self.prediction],
            "notes": list(self.notes),
            "details": dict(self.details),
            **({"licence": self.licence.to_dict()} if self.licence else {}),
            **({"true_label": self.true_label} if self.true_label is not None else {}),
        }

    def to_html(self, path: str | PathLike[str], *, precision: str = BYTES) -> Path:
        """Write a page that shows the explanation: one file that needs no network.

        `precision` is that of the maps, as in `Maps.to_html`.
        """
        return views.write_whole(path, views.page(self.payload(precision), self._page_title()))

    def payload(self, precision: str = BYTES) -> dict[str, Any]:
        """What a page, a notebook or a terminal draws."""
        scored = zip(token_rows(self.tokens), self.scores, strict=True)
        words = [row | {"positions": list(row["positions"])} for row in self._words()]
        return {
            "kind": self.view_kind,
            "version": 1,
            "headline": self.headline,
            "true_label": self.true_label,
            **self.origin.view_facts(),
            "target": asdict(self.target),
            "prediction": [dict(choice) for choice in self.prediction],
            "tokens": [row | {"score": float(score)} for row, score in scored],
            "words": [{"text": row.pop("word"), **row} for row in words],
            "sources": dict(self.tokens.sources),
            "pictures": picture_rows(self.tokens, self.pictures),
            "sinks": [sink.to_dict() for sink in self.sinks],
            "licence": self.licence.to_dict() if self.licence else None,
            "sum": score_sum(self.details, float(self.scores.sum(dtype=np.float64))),
            "warning": self.warning,
            "notes": [note for note in self.notes if note != self.warning],
            "code": self.code(),
            "maps": self._shown_maps(precision),
        }

    def _shown_maps(self, precision: Any) -> dict[str, Any] | None:
        section = self.maps.payload_section(precision) if self.maps else None
        return section and {**section, "signed": section["signed"] and self.origin.takes_sides}

    def code(self) -> str:
        """The Python lines that compute this again; you must fill in a picture yourself."""
        return self.origin.code(picture=bool(self.pictures or self.tokens.grids))

    def to_latex(self) -> str:
        """The coloured words as LaTeX; the first line says what the preamble needs."""
        return views.latex(self.payload())

    def _page_title(self) -> str:
        return f"{self.headline} · {self.method}"

    def _sketch(self) -> "Explanation":
        return self if self.maps is None else replace(self, maps=self.maps._sketch())

    def _to_record(self) -> tuple[dict[str, Any], dict[str, Any]]:
        header = {"tokens": self.tokens.to_dict(), **self._header()}
        header["maps"] = None if self.maps is None else self.maps.header()
        arrays = {"scores": self.scores, **picture_arrays(self.pictures)}
        return header, arrays | (self.maps.arrays() if self.maps else {})

    @classmethod
    def _from_record(cls, header: Mapping[str, Any], arrays: Mapping[str, Any]) -> "Explanation":
        tokens = Tokens.from_dict(header["tokens"])
        maps = header["maps"]
        return cls(
            tokens,
            arrays["scores"],
            TargetRecord(**header["target"]),
            Origin.from_dict(header["origin"]),
            tuple(header["prediction"]),
            tuple(header["notes"]),
            None if maps is None else Maps.restore(maps, arrays, tokens),
            read_pictures(arrays),
            header["details"],
            Licence.from_dict(known) if (known := header.get("licence")) else None,
            header.get("true_label"),
        )

    @classmethod
    def from_dict(cls, record: Mapping[str, Any]) -> "Explanation":
        """Read what `to_dict` returned; the scores come back in single precision."""
        scores = np.array(record["scores"], dtype=np.float32)
        return cls._from_record({**record, "maps": None}, {"scores": scores})

    def top(self, count: int = 5) -> list[tuple[str, float]]:
        """The words with the largest absolute scores, without special tokens."""
        if not isinstance(count, int) or count < 0:
            raise UsageError(f"top takes a number of words, 0 or more, not {count!r}")
        words = [(row["word"], row["score"]) for row in self._words() if not row["special"]]
        order = np.argsort([-abs(score) for _, score in words], kind="stable")[:count]
        return [words[i] for i in order]

    def __repr__(self) -> str:
        words = ", ".join(f"{visible(word)} {score:+.3f}" for word, score in self.top(3))
        return f"Explanation({self.method} of {visible(self.target.name)}: {words})"
