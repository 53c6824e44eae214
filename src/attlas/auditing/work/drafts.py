"""Drafts: what is known of an item of work before it is done, written every half minute.

An item takes seconds for a small model and hours for a large one. What a run that was stopped had
asked the model is not asked again.
"""

from collections.abc import Callable, Iterator, Mapping
from time import monotonic

import numpy as np
import pandas as pd

from attlas.auditing.folder import Folder
from attlas.keeping import Arrays
from attlas.removing.erasures import Erasures
from attlas.shapes import TokenVector, Ways

EVERY = 30.0  # seconds between two drafts
PORTION = 10**12  # products of a weight and a token: some seconds of work for a processor
Scores = list[tuple[int, TokenVector]]  # of a method, by text


class KeptParts:
    """The finished parts of one trial, or of one measure that runs a method again."""

    def __init__(self, folder: Folder, table: str) -> None:
        self._folder, self._name = folder, f"draft {table}"
        self._last = monotonic()
        self._parts: dict[str, Arrays] = {}
        if folder.has(self._name):
            rows = folder.read(self._name)[0].itertuples(index=False, name=None)
            for part, shape, values in rows:
                own = self._parts.setdefault(part, [])
                sizes = [int(size) for size in shape]
                own.append(np.array(values, dtype=np.float64).reshape(sizes))

    def keep(self, part: str, compute: Callable[[], Arrays]) -> Arrays:
        """The arrays of a part; computed if they are not known, and written when it is time."""
        if part not in self._parts:
            self._parts[part] = compute()
            if monotonic() - self._last >= EVERY:
                self._last = monotonic()
                self._write()
        return self._parts[part]

    def remove(self) -> None:
        """Delete the draft, once the item is done."""
        self._folder.remove(self._name)

    def _write(self) -> None:
        rows = [
            (part, list(each.shape), each.ravel().tolist())
            for part, arrays in self._parts.items()
            for each in arrays
        ]
        self._folder.write(self._name, pd.DataFrame(rows, columns=["part", "shape", "values"]))


class Drafts:
    """The scores and the model's answers of one batch of texts, as far as they are known."""

    def __init__(self, folder: Folder | None = None, number: int = 0) -> None:
        self._folder, self._number = folder, number
        self._last = monotonic()
        self._written: set[str] = set()
        self._scores: dict[tuple[str, int], Scores] = {}
        for method, place, text, scores in self._read("scores").itertuples(index=False, name=None):
            known = self._scores.setdefault((method, place), [])
            known.append((text, np.asarray(scores, dtype=np.float64)))

    def scores(self, method: str, place: int, ask: Callable[[], Scores]) -> Scores:
        """The scores of a method on the question at this place; asked for if not known."""
        if (method, place) not in self._scores:
            self._scores[method, place] = ask()
            if self._is_due():
                self._write("scores", self._score_frame())
        return self._scores[method, place]

    def ask(self, erasures: Erasures, wanted: Mapping[int, Ways]) -> None:
        """Ask for the answers that are not known, in portions, and write them when it is time."""
        for text, known in self._read(f"answers {erasures.how}").groupby("text"):
            answers = np.stack(known["answer"].tolist())
            erasures.restore(int(str(text)), known["way"].tolist(), answers)
        for portion in _portions(erasures, wanted):
            erasures.ask(portion)
            self.keep(erasures)

    def keep(self, erasures: Erasures) -> None:
        """Write all that is known, if it is time."""
        if self._is_due():
            answers = pd.DataFrame(erasures.known(), columns=["text", "way", "answer"])
            self._write("scores", self._score_frame())
            self._write(f"answers {erasures.how}", answers)

    def remove(self) -> None:
        """Delete the drafts, once the batch is done."""
        if self._folder is not None:
            for name in self._written:
                self._folder.remove(name)

    def _is_due(self) -> bool:
        if monotonic() - self._last < EVERY:
            return False
        self._last = monotonic()
        return True

    def _score_frame(self) -> pd.DataFrame:
        rows = [
            (method, place, text, scores.tolist())
            for (method, place), known in self._scores.items()
            for text, scores in known
        ]
        return pd.DataFrame(rows, columns=["method", "place", "text", "scores"])

    def _read(self, name: str) -> pd.DataFrame:
        known = f"draft {self._number:05d} {name}"
        if self._folder is None or not self._folder.has(known):
            return pd.DataFrame(columns=["text"])
        self._written.add(known)
        return self._folder.read(known)[0]

    def _write(self, name: str, frame: pd.DataFrame) -> None:
        if self._folder is not None:
            known = f"draft {self._number:05d} {name}"
            self._written.add(known)
            self._folder.write(known, frame)


def _portions(erasures: Erasures, wanted: Mapping[int, Ways]) -> Iterator[dict[int, Ways]]:
    """The ways of all texts in portions that take about equally long, whoever is asked."""
    portion: dict[int, Ways] = {}
    left = PORTION
    for text, ways in wanted.items():
        each, start = max(erasures.work(text), 1), 0
        while start < len(ways):
            count = max(left // each, 0 if portion else 1)
            if not count:
                yield portion
                portion, left = {}, PORTION
                continue
            portion[text] = ways[start : start + count]
            start, left = start + count, left - each * count
    if portion:
        yield portion
