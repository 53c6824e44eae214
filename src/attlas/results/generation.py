"""Generation: the scores of one method for every token that a model wrote."""

from base64 import b64encode
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any, ClassVar

import numpy as np

from attlas.errors import UnknownNameError, UsageError
from attlas.results.explanation import Explanation
from attlas.results.support.files import plain
from attlas.results.support.frames import Frame, frame
from attlas.results.support.generated_text import (
    check_matrix,
    shortened,
    tokens_before,
    unit_labels,
    unit_rows,
    unit_scores,
    written_text,
)
from attlas.results.support.origin import Origin, TargetRecord, mean_target
from attlas.results.support.pictures import (
    check_pictures,
    picture_arrays,
    picture_rows,
    read_pictures,
)
from attlas.results.support.result import Result
from attlas.results.support.sums import Sink, find_sinks, mean_details, removal_note, score_sum
from attlas.results.support.words import (
    Unit,
    segment_units,
    sentence_units,
    token_rows,
    token_units,
    word_units,
)
from attlas.shapes import OutputScores, Picture
from attlas.tokens import Tokens
from attlas.views.units import visible

LEVELS: Mapping[str, Callable[[Tokens], list[Unit]]] = {
    "tokens": token_units,
    "words": word_units,
    "sentences": sentence_units,
    "segments": segment_units,
}


@dataclass(frozen=True, eq=False)
class Generation(Result):
    """A matrix, output × input: how much each written token owes to each token before it.

    `tokens` holds the prompt (for an encoder–decoder: the source, then the decoder's start) and
    then the written tokens. Row r explains `tokens[outputs[r]]`; it is zero there and after it.
    """

    view_kind: ClassVar[str] = "generation"
    record_kind: ClassVar[str] = "generation"

    tokens: Tokens
    scores: OutputScores
    outputs: tuple[int, ...]  # the position in `tokens` that each row explains
    targets: tuple[TargetRecord, ...]  # one for each row
    origin: Origin
    notes: tuple[str, ...] = ()
    predictions: tuple[
        tuple[Mapping[str, Any], ...], ...
    ] = ()  # the most likely tokens at each row
    pictures: Mapping[str, Picture] = field(
        default_factory=dict
    )  # by segment, as the model saw them
    row_notes: tuple[tuple[str, ...], ...] = ()  # notes on single rows
    row_warnings: tuple[str, ...] = ()  # why a row must not be relied on, or ""
    row_details: tuple[Mapping[str, Any], ...] = ()  # what else the method computed, as JSON

    def __post_init__(self) -> None:
        check_matrix(self.tokens, self.scores, self.outputs)
        for name, given in (("targets", self.targets), ("predictions", self.predictions)):
            if len(given) != len(self) and (given or name == "targets"):
                raise UsageError(f"{len(self)} outputs but {len(given)} {name}")
        check_pictures(self.pictures)
        predictions = tuple(tuple(plain(each) for each in row) for row in self.predictions)
        object.__setattr__(self, "predictions", predictions)
        object.__setattr__(self, "row_details", tuple(plain(row) for row in self.row_details))

    def __len__(self) -> int:
        """How many tokens are explained."""
        return len(self.outputs)

    @property
    def method(self) -> str:
        """The name of the method."""
        return self.origin.method

    @property
    def text(self) -> str:
        """The text of the written tokens that are explained."""
        return written_text(self.tokens, self.outputs)

    @property
    def warning(self) -> str:
        """Which rows must not be relied on, and why; empty if the method has no doubt."""
        doubted = [each for each in self.row_warnings if each]
        if not doubted:
            return ""
        return f"{len(doubted)} of {len(self)} written tokens, the first of them: {doubted[0]}"

    def _own_notes(self) -> tuple[str, ...]:
        return tuple(note for note in self.notes if note != self.warning)

    def row(self, index: int) -> Explanation:
        """Return the explanation of one written token by the tokens before it."""
        try:
            place = range(len(self))[index]
        except IndexError:
            raise UsageError(f"there is no row {index}: {len(self)} tokens were written") from None
        stop = self.outputs[place]
        warned = self.row_warnings[place] if self.row_warnings else ""
        return Explanation(
            tokens_before(self.tokens, stop),
            self.scores[place, :stop],
            self.targets[place],
            self.origin.followed_by(f".row({place})"),
            self.predictions[place] if self.predictions else (),
            (
                *([warned] if warned else []),
                *self._own_notes(),
                *(self.row_notes[place] if self.row_notes else ()),
            ),
            pictures=self.pictures,
            details={**self._details(place), **({"warning": warned} if warned else {})},
        )

    def _details(self, place: int) -> Mapping[str, Any]:
        return self.row_details[place] if self.row_details else {}

    def mean(self, start: int = 0, stop: int | None = None) -> Explanation:
        """Return the mean of the rows from `start` up to `stop` as one explanation.

        Tokens inside this span have scores too, from the rows after them.
        """
        places = range(len(self))[start:stop]
        if not places:
            raise UsageError(f"no row from {start} to {stop}: there are {len(self)} written tokens")
        last = self.outputs[places[-1]]
        scores = self.scores[places.start : places.stop, :last]
        count = f"The mean over {len(places)} written tokens."
        return Explanation(
            tokens_before(self.tokens, last),
            scores.mean(axis=0, dtype=np.float64).astype(scores.dtype),
            mean_target(
                written_text(self.tokens, [self.outputs[place] for place in places]),
                [self.targets[place] for place in places],
            ),
            self.origin.followed_by(f".mean({places.start}, {places.stop})"),
            notes=(*self.notes, count),
            details={
                **mean_details([self._details(place) for place in places]),
                **({"warning": self.warning} if self.warning else {}),
            },
            pictures=self.pictures,
        )

    @property
    def sinks(self) -> tuple[Sink, ...]:
        """First tokens that hold more than half of the mean row; empty for signed scores."""
        if self.origin.signed or not len(self):
            return ()
        return find_sinks(self.tokens, self.scores.mean(axis=0, dtype=np.float64))

    def without_sinks(self) -> "Generation":
        """A copy in which sinks score zero; a note says how much they held."""
        if not self.sinks:
            return self
        scores = self.scores.copy()
        scores[:, [sink.position for sink in self.sinks]] = 0
        return replace(
            self,
            scores=scores,
            origin=self.origin.followed_by(".without_sinks()"),
            notes=(*self.notes, removal_note(self.tokens, self.sinks)),
        )

    def aggregate(self, level: str = "words") -> Frame:
        """Return the matrix over tokens, words, sentences or segments (the messages of a chat).

        There is a row for each written unit and a column for every unit. Scores are summed over the
        tokens of a column and averaged over those of a row. Labels are the position of the first
        token and the text; `table.droplevel(0).droplevel(0, axis=1)` keeps only the texts.
        """
        if level not in LEVELS:
            raise UnknownNameError("level", level, LEVELS)
        units = LEVELS[level](self.tokens)
        written = [units[i] for i in unit_rows(self.outputs, units)]
        return frame(
            unit_scores(self.scores, self.outputs, units),
            index=unit_labels(written, "output"),
            columns=unit_labels(units, "input"),
        )

    def to_pandas(self) -> Frame:
        """One row for each written token and each token before it, by position in `tokens`."""
        outputs = np.array(self.outputs, dtype=np.int64)
        rows, inputs = np.nonzero(np.arange(len(self.tokens)) < outputs[:, None])
        texts = np.array(self.tokens.texts, dtype=object)
        return frame(
            {
                "output": outputs[rows],
                "output_token": texts[outputs[rows]],
                "input": inputs,
                "input_token": texts[inputs],
                "score": self.scores[rows, inputs],
            }
        )

    def to_dict(self) -> dict[str, Any]:
        """Everything but the picture, as JSON."""
        return {"scores": self.scores.astype(np.float64).tolist(), **self._header()}

    def _header(self) -> dict[str, Any]:
        return {
            "tokens": self.tokens.to_dict(),
            "outputs": list(self.outputs),
            "targets": [asdict(target) for target in self.targets],
            "origin": self.origin.to_dict(),
            "predictions": [[dict(choice) for choice in row] for row in self.predictions],
            "notes": list(self.notes),
            "row_notes": [list(notes) for notes in self.row_notes],
            **({"row_warnings": list(self.row_warnings)} if self.row_warnings else {}),
            **({"row_details": list(map(dict, self.row_details))} if self.row_details else {}),
        }

    def payload(self) -> dict[str, Any]:
        """What a page, a notebook or a terminal draws; scores are little-endian floats."""
        return {
            "kind": self.view_kind,
            "version": 1,
            "headline": f"Why “{shortened(self.text)}”?",
            **self.origin.view_facts(),
            "tokens": token_rows(self.tokens),
            "words": [unit.to_dict() for unit in word_units(self.tokens)],
            "sentences": [unit.to_dict() for unit in sentence_units(self.tokens)],
            "sources": dict(self.tokens.sources),
            "outputs": list(self.outputs),
            "targets": [asdict(target) for target in self.targets],
            "predictions": [[dict(choice) for choice in row] for row in self.predictions],
            "shape": list(self.scores.shape),
            "data": b64encode(self.scores.astype("<f4").tobytes()).decode("ascii"),
            "pictures": picture_rows(self.tokens, self.pictures),
            "sinks": [sink.to_dict() for sink in self.sinks],
            "sums": self._sums(),
            "warning": self.warning,
            "notes": list(self._own_notes()),
            "code": self.code(),
        }

    def _sums(self) -> list[dict[str, Any] | None]:
        totals = self.scores.sum(axis=1, dtype=np.float64).tolist()
        return [score_sum(self._details(place), total) for place, total in enumerate(totals)]

    def code(self) -> str:
        """The Python lines that compute this again; you must fill in a picture yourself."""
        return self.origin.code(picture=bool(self.pictures or self.tokens.grids))

    def _page_title(self) -> str:
        return f"{self.method} · {self.text}"

    def _to_record(self) -> tuple[dict[str, Any], dict[str, Any]]:
        return self._header(), {"scores": self.scores, **picture_arrays(self.pictures)}

    @classmethod
    def _from_record(cls, header: Mapping[str, Any], arrays: Mapping[str, Any]) -> "Generation":
        return cls(
            Tokens.from_dict(header["tokens"]),
            arrays["scores"],
            tuple(header["outputs"]),
            tuple(TargetRecord(**target) for target in header["targets"]),
            Origin.from_dict(header["origin"]),
            tuple(header["notes"]),
            tuple(tuple(row) for row in header["predictions"]),
            read_pictures(arrays),
            tuple(tuple(notes) for notes in header["row_notes"]),
            tuple(header.get("row_warnings", ())),
            tuple(header.get("row_details", ())),
        )

    @classmethod
    def from_dict(cls, record: Mapping[str, Any]) -> "Generation":
        """Read what `to_dict` returned; the scores come back in single precision."""
        shape = len(record["outputs"]), len(record["tokens"]["texts"])
        scores = np.array(record["scores"], dtype=np.float32).reshape(shape)
        return cls._from_record(record, {"scores": scores})

    def __repr__(self) -> str:
        shown = visible(shortened(self.text))
        return f"Generation({self.method} of {len(self)} written tokens: {shown})"
