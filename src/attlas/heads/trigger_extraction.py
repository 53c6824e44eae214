"""Where triggers come from: the largest attributions in texts and the words they point at."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from torch import Tensor

from attlas.heads.site_attribution import attribute_sites
from attlas.heads.trigger_effects import relative_place
from attlas.models.asking.memory import in_fitting_batches
from attlas.models.asking.question import Question
from attlas.results.support.words import word_units
from attlas.results.triggers import Entry, Trigger, TriggerWord
from attlas.tokens import Tokens

SECOND = 0.2  # the second largest entry joins a trigger if it has this share of the largest


@dataclass(frozen=True, eq=False)
class Peak:
    """The head with the largest entry of all, and its attribution `[query, key]`."""

    site: str
    head: int
    table: Tensor


def extract(question: Question, steps: int | None) -> Iterator[Trigger]:
    """The trigger of each row; rows whose largest attribution is at no word have none."""
    device = question.subject.device
    too_large = f"the attribution of one text does not fit on {device}: load it in half precision"

    def work(rows: Sequence[int]) -> list[Trigger | None]:
        asked = batch.rows(rows)
        peaks = find_peaks(asked, steps)
        return [_trigger(asked, row, peak) for row, peak in enumerate(peaks)]

    for batch in question.batches_holding(question.subject.sites):
        for triggers in in_fitting_batches(range(len(batch)), work, too_large):
            yield from (trigger for trigger in triggers if trigger is not None)


def find_peaks(question: Question, steps: int | None) -> list[Peak]:
    """For each row, the head with the largest entry over all sites."""
    best: list[Peak | None] = [None] * len(question)
    for attribution in attribute_sites(question, question.subject.sites, steps):
        largest = attribution.weights.flatten(2).amax(dim=2)  # [batch, head]
        for row, heads in enumerate(largest):
            peak, head = best[row], int(heads.argmax())
            if peak is None or float(heads[head]) > float(peak.table.max()):
                table = attribution.weights[row, head].cpu()
                best[row] = Peak(attribution.site.name, head, table)
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
    """The whole words that contain these tokens, without special tokens."""
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
