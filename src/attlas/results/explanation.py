"""Explanation: what a method gave for one input, with all that is needed to compute it again."""

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from rich.console import Console, ConsoleOptions, RenderableType

from attlas import views
from attlas.errors import UnknownNameError, UsageError
from attlas.results.files import plain, read_record, write_record
from attlas.results.maps import Maps, token_rows
from attlas.results.words import join_tokens
from attlas.shapes import TokenVector
from attlas.tokens import Tokens
from attlas.views.units import visible

LEVELS = ("tokens", "words")


@dataclass(frozen=True)
class TargetRecord:
    """What was explained: its name, the quantity the method looked at, and its value."""

    name: str
    quantity: str  # logit, probability, log-probability or value
    value: float
    contrast: str | None = None
    position: int | None = None  # the token it was read at, where that is a choice


@dataclass(frozen=True)
class Origin:
    """How the explanation was made: enough to make it again.

    `options` and `asked` are kept as JSON can hold them, but for a pair of texts, a tuple of two.
    """

    model: str
    task: str
    method: str
    signed: bool
    paper: str = ""
    reading: str = ""
    options: Mapping[str, Any] = field(default_factory=dict)
    asked: Mapping[str, Any] = field(default_factory=dict)
    versions: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        text, asked = self.asked.get("text"), plain(self.asked)
        if isinstance(text, tuple):
            asked["text"] = text
        object.__setattr__(self, "asked", asked)
        object.__setattr__(self, "options", plain(self.options))

    def to_dict(self) -> dict[str, Any]:
        """The origin as JSON; a pair of texts is `{"pair": [one, other]}`, and no list of words."""
        record = asdict(self)
        if isinstance(self.asked.get("text"), tuple):
            record["asked"]["text"] = {"pair": list(self.asked["text"])}
        return record

    @classmethod
    def from_dict(cls, record: Mapping[str, Any]) -> "Origin":
        """Read what `to_dict` gave."""
        asked = dict(record["asked"])
        if isinstance(asked.get("text"), dict):
            asked["text"] = tuple(asked["text"]["pair"])
        return cls(**{**record, "asked": asked})


@dataclass(frozen=True, eq=False)
class Explanation:
    """A score for each token of one input.

    Special tokens are in place and marked in `tokens.special`. `prediction` lists the model's
    best choices; `notes` says whatever a reader must know (a text cut, a prefix generated).
    """

    tokens: Tokens
    scores: TokenVector
    target: TargetRecord
    origin: Origin
    prediction: tuple[Mapping[str, Any], ...] = ()
    notes: tuple[str, ...] = ()
    maps: Maps | None = None

    def __post_init__(self) -> None:
        if self.scores.shape != (len(self.tokens),):
            raise UsageError(f"{len(self.tokens)} tokens but scores of shape {self.scores.shape}")
        if self.scores.dtype.kind != "f" or not np.isfinite(self.scores).all():
            raise UsageError("scores must be finite floating-point numbers")
        object.__setattr__(self, "prediction", tuple(plain(each) for each in self.prediction))

    @property
    def method(self) -> str:
        """The name of the method."""
        return self.origin.method

    @property
    def segments(self) -> tuple[str, ...]:
        """The segment each token belongs to: source and prefix, the two texts of a pair."""
        return self.tokens.segments

    def aggregate(self, level: str = "words") -> pd.DataFrame:
        """Scores summed over the tokens of each word, a row a word, in the order of the text."""
        if level not in LEVELS:
            raise UnknownNameError("level", level, LEVELS)
        if level == "tokens":
            return self.to_pandas()
        rows = [
            {
                "word": unit.text,
                "score": float(self.scores[list(unit.positions)].sum(dtype=np.float64)),
                "special": unit.special,
                "segment": unit.segment,
                "positions": unit.positions,
            }
            for unit in join_tokens(self.tokens)
        ]
        return pd.DataFrame(rows, columns=["word", "score", "special", "segment", "positions"])

    def to_pandas(self) -> pd.DataFrame:
        """One row for each token."""
        spans = [span or (None, None) for span in self.tokens.offsets]
        return pd.DataFrame(
            {
                "token": list(self.tokens),
                "score": self.scores,
                "special": self.tokens.special,
                "segment": self.tokens.segments,
                "start": pd.array([start for start, _ in spans], dtype="Int64"),
                "end": pd.array([end for _, end in spans], dtype="Int64"),
            }
        )

    def to_dict(self) -> dict[str, Any]:
        """Everything but the maps, as JSON."""
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
        }

    def payload(self) -> dict[str, Any]:
        """What a page, a notebook or a terminal draws."""
        origin = asdict(self.origin)
        scored = zip(token_rows(self.tokens), self.scores, strict=True)
        words = self.aggregate("words").rename(columns={"word": "text"})
        return {
            "kind": "explanation",
            "version": 1,
            **{key: origin[key] for key in ("model", "task", "method", "signed", "paper")},
            **{key: origin[key] for key in ("reading", "options", "versions")},
            "target": asdict(self.target),
            "prediction": [dict(choice) for choice in self.prediction],
            "tokens": [row | {"score": float(score)} for row, score in scored],
            "words": [
                row | {"positions": list(row["positions"])} for row in words.to_dict("records")
            ],
            "sources": dict(self.tokens.sources),
            "grid": list(self.tokens.grid) if self.tokens.grid else None,
            "notes": list(self.notes),
            "code": self.code(),
            "maps": self.maps.payload() if self.maps else None,
        }

    def code(self) -> str:
        """The Python lines that compute this again; a picture must be put in by hand."""
        given = {**self.origin.asked, "method": self.method, **self.origin.options}
        text = given.pop("text", "…")
        options = "".join(f", {key}={value!r}" for key, value in given.items() if value is not None)
        lines = ["import attlas", f"subject = attlas.load({self.origin.model!r})"]
        shown, chosen = repr(text), ""
        if self.tokens.grid:
            lines.append("image = ...  # the picture")
            shown = "image"
        elif isinstance(text, list) and text and isinstance(text[0], (str, list)):
            # A list of words is one text only inside a list of texts.
            shown, chosen = repr([text] if isinstance(text[0], str) else text), "[0]"
        lines.append(f"attlas.explain(subject, {shown}{options}){chosen}")
        return "\n".join(lines)

    def to_html(self, path: str | PathLike[str]) -> Path:
        """Write a page that shows the explanation: one file, no network."""
        title = f"{self.method} · {self.target.name}"
        return views.write_whole(path, views.page(self.payload(), title))

    def save(self, path: str | PathLike[str]) -> Path:
        """Write the explanation to one file: safetensors, the rest in its header as JSON."""
        header = {"tokens": self.tokens.to_dict(), **self._header()}
        header["maps"] = None if self.maps is None else self.maps.header()
        arrays = {"scores": self.scores, **(self.maps.arrays() if self.maps else {})}
        return write_record(path, "explanation", header, arrays)

    @classmethod
    def load(cls, path: str | PathLike[str]) -> "Explanation":
        """Read what `save` wrote."""
        with read_record(path, "explanation") as (header, arrays):
            tokens = Tokens.from_dict(header["tokens"])
            drawn = header["maps"]
            return cls(
                tokens,
                arrays["scores"],
                TargetRecord(**header["target"]),
                Origin.from_dict(header["origin"]),
                tuple(header["prediction"]),
                tuple(header["notes"]),
                None if drawn is None else Maps.restore(drawn, arrays, tokens),
            )

    def top(self, count: int = 5) -> list[tuple[str, float]]:
        """The words with the largest scores by size, special tokens left out."""
        words = self.aggregate("words")
        words = words[~words["special"].astype(bool)]
        order = np.argsort(-words["score"].abs().to_numpy(), kind="stable")[:count]
        return [(words["word"].iloc[i], float(words["score"].iloc[i])) for i in order]

    def _repr_html_(self) -> str:
        return views.fragment(self.payload())

    def __rich_console__(
        self, console: Console, options: ConsoleOptions
    ) -> Iterator[RenderableType]:
        yield views.render(self.payload())

    def __repr__(self) -> str:
        words = ", ".join(f"{visible(word)} {score:+.3f}" for word, score in self.top(3))
        return f"Explanation({self.method} of {visible(self.target.name)}: {words})"
