"""Where triggers come from: the largest attributions in texts whose prediction rests on them."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from torch import Tensor

from attlas.heads.attributing import attribute_sites
from attlas.heads.insertion import relative_place
from attlas.models.asking.memory import in_fitting_batches
from attlas.models.asking.question import Question
from attlas.results.support.words import word_units
from attlas.results.triggers import Entry, Trigger, TriggerWord
from attlas.tokens import Tokens

SECOND = 0.2  # the share of the largest entry that the next must have to be part of a trigger


@dataclass(frozen=True, eq=False)
class Peak:
    """The head with the largest entry of all, as `[query, key]`."""

    site: str
    head: int
    table: Tensor


def extract(question: Question, steps: int | None) -> Iterator[Trigger]:
    """The trigger of each row, those with no word left out."""
    device = question.subject.device
    too_large = f"the attribution of one text does not fit on {device}: load it in half precision"

    def work(rows: Sequence[int]) -> list[Trigger | None]:
        part = batch.rows(rows)
        peaks = find_peaks(part, steps)
        return [_trigger(part, row, peak) for row, peak in enumerate(peaks)]

    for batch in question.batches_holding(question.subject.sites):
        for found in in_fitting_batches(range(len(batch)), work, too_large):
            yield from (trigger for trigger in found if trigger is not None)


def find_peaks(question: Question, steps: int | None) -> list[Peak]:
    """For each row, the head that has the largest entry over all sites."""
    best: list[Peak | None] = [None] * len(question)
    for found in attribute_sites(question, question.subject.sites, steps):
        tops = found.weights.flatten(2).amax(dim=2)  # [batch, head]
        for row, heads in enumerate(tops):
            held, head = best[row], int(heads.argmax())
            if held is None or float(heads[head]) > float(held.table.max()):
                best[row] = Peak(found.site.name, head, found.weights[row, head].cpu())
    return [peak for peak in best if peak is not None]


def _trigger(question: Question, row: int, peak: Peak) -> Trigger | None:
    tokens = question.inputs.tokens[row]
    values, places = peak.table.flatten().topk(min(2, peak.table.numel()))
    pairs = [divmod(int(place), peak.table.shape[1]) for place in places]
    entries = [
        Entry(tokens[query], tokens[key], float(value))
        for (query, key), value in zip(pairs, values, strict=True)
    ]
    large = [pair for pair, value in zip(pairs, values, strict=True) if value >= SECOND * values[0]]
    words = words_at(tokens, {place for pair in large for place in pair})
    if not words or values[0] <= 0:
        return None
    return Trigger(
        words,
        float(values.sum()),
        tuple(entries),
        peak.site,
        peak.head,
        shown_text(question.inputs.texts[row]),
        question.targets[row].name,
    )


def words_at(tokens: Tokens, places: set[int]) -> tuple[TriggerWord, ...]:
    """The whole words that these tokens are part of; special tokens are left out."""
    units = [unit for unit in word_units(tokens) if places & set(unit.positions)]
    return tuple(
        TriggerWord(
            unit.text,
            unit.segment,
            relative_place(tokens.sources[unit.segment], unit.span[0]),
        )
        for unit in units
        if not unit.special and unit.span is not None and unit.text.strip()
    )


def shown_text(text: Any) -> str:
    """A text, or a pair, as one line."""
    return text if isinstance(text, str) else " / ".join(text)
