"""The verb `triggers`: words that a model trusts too much, inserted into other texts.

Hao, Dong, Wei and Xu, "Self-Attention Attribution", AAAI 2021.
"""

import warnings
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from attlas.data import ReadData, read_examples
from attlas.data.conversations import is_conversation
from attlas.data.example import Text
from attlas.errors import UnknownNameError, UnsupportedModelError, UsageError
from attlas.explaining.method_call import MethodCall, origin
from attlas.heads.site_attribution import attribute_sites, check_one_stack
from attlas.heads.trigger_effects import CUT, LabelledText, TriggerTest, count_words, relative_place
from attlas.methods import METHODS
from attlas.models.asking.memory import in_fitting_batches, telling_shortages
from attlas.models.asking.question import Question
from attlas.models.asking.resolve import find_label
from attlas.models.subject import Subject, check_subject
from attlas.progress import Step, Watch
from attlas.results import Origin
from attlas.results.support.words import word_units
from attlas.results.triggers import Entry, Trigger, Triggers, TriggerWord
from attlas.tokens import Tokens
from attlas.verbs import verb

VERB = "triggers"
CANDIDATES = 10
OLD_COUNT = (
    "triggers: count= will be the number of texts that are drawn; "
    "the number of triggers to try is candidates="
)
READING = (
    "Each row: words that one prediction rested on, inserted into other texts at the same place. "
    "What counts is the drop beyond that of random words of the same frequency. The strongest of "
    "many triggers is partly luck: each interval is for one trigger alone."
)
SECOND = 0.2  # the second largest entry joins a trigger if it has this share of the largest


@verb("finding triggers")
@telling_shortages
def triggers(
    subject: Subject,
    data: Any,
    *,
    text: str | None = None,
    pair: str | None = None,
    label: str | None = None,
    spans: str | None = None,
    split: str | None = None,
    count: int | None = None,
    candidates: int | None = None,
    extract_from: int = 100,
    draws: int = 5,
    least: int | float = 0.0,
    steps: int | None = None,
    seed: int = 0,
    watch: Watch = lambda step: None,
) -> Triggers:
    """Find words that a classifier trusts too much, and measure what they do to other texts.

    `data` and the arguments from `text` to `count` are those of `read_examples`; every text needs a
    label. Triggers come from at most `extract_from` of the texts and at most half of them: in each
    text, from the head with the largest attribution to the prediction. The `candidates` (10 by
    default) with the largest attributions, taken from each predicted class in turn, are inserted
    into all other texts, and so are random words of the same frequency, `draws` times. Triggers
    with an attribution below `least` are not tried. `seed` decides which texts serve for what.
    `count` without `candidates` keeps its old meaning for one more version: the number of
    candidates.
    """
    check_subject(subject, VERB)
    _check_model(subject)
    candidates, count = _numbers(candidates, count)
    options = {"candidates": candidates, "extract_from": extract_from, "draws": draws}
    for name, value in options.items():
        if value < 1:
            raise UsageError(f"{name} must be at least 1, not {value}")
    columns: dict[str, Any] = {"text": text, "pair": pair, "label": label, "spans": spans}
    read = read_examples(data, split=split, count=count, seed=seed, **columns).labelled(VERB)
    if any(is_conversation(each.text) for each in read.examples):
        raise UsageError(f"{VERB} inserts words into texts; {read.source} holds conversations")
    examples, unknown = known_labels(read, subject.labels)
    random = np.random.default_rng(seed)
    shuffled = [examples[i] for i in random.permutation(len(examples))]
    cut = min(extract_from, len(examples) // 2)
    counts = count_words(text for text, _ in examples)
    test = TriggerTest(subject, shuffled[cut:], counts, draws, random)
    with torch.inference_mode(False):
        extracted = _extract_all(subject, [text for text, _ in shuffled[:cut]], steps, watch)
        strong = [trigger for trigger in extracted if trigger.attribution >= least]
        measured = test.measure(by_class_in_turn(strong)[:candidates], watch)
    notes = [
        f"{len(strong)} different triggers in {cut} texts; {len(measured)} of them tried on "
        f"{len(examples) - cut} other texts, each compared with {draws} draws of random words."
    ]
    notes += read.notes_on_left_out()
    if unknown:
        notes.append(f"{unknown} texts were left out: the model does not know their labels.")
    ordered = sorted(measured, key=lambda each: -each.strongest.drop)
    made = _origin(subject, {**options, "least": least, "steps": steps, "seed": seed})
    return Triggers(tuple(ordered), made, tuple(notes))


def _numbers(candidates: int | None, count: int | None) -> tuple[int, int | None]:
    """Return how many triggers are tried, and how many texts are drawn."""
    if count is not None and candidates is None:
        warnings.warn(OLD_COUNT, FutureWarning, stacklevel=5)
        return count, None
    return CANDIDATES if candidates is None else candidates, count


def _origin(subject: Subject, options: Mapping[str, Any]) -> Origin:
    made = origin(MethodCall(METHODS["attattr"], CUT, {}), subject, {}, VERB)
    return replace(made, method=VERB, signed=False, reading=READING, options=options, asked={})


def _check_model(subject: Subject) -> None:
    name = subject.task.name if subject.task else "no head"
    if name != "sequence classification" or subject.link != "softmax":
        raise UnsupportedModelError(
            f"triggers need a model that gives a text one of several labels, and {subject.name} "
            f"is for {name} ({subject.link})"
        )
    check_one_stack(subject)


def known_labels(data: ReadData, labels: Sequence[str]) -> tuple[list[LabelledText], int]:
    """Texts without repeats and the numbers of their labels; and how many have unknown labels."""
    known: dict[Text, int] = {}
    unknown: dict[Text, UnknownNameError] = {}
    for each in data.examples:
        try:
            known.setdefault(each.text, find_label(labels, each.label))
        except UnknownNameError as problem:
            unknown[each.text] = problem
    if unknown and not known:
        raise next(iter(unknown.values()))
    if len(known) < 2:
        raise UsageError(f"triggers need at least two different texts, not {len(known)}")
    if len({isinstance(text, str) for text in known}) > 1:
        raise UsageError("the data must be texts or pairs of texts, not a mixture")
    return list(known.items()), len(unknown)


def _extract_all(
    subject: Subject, texts: Sequence[Text], steps: int | None, watch: Watch
) -> list[Trigger]:
    """The triggers of these texts, largest attribution first; equal words count once."""
    extracted: list[Trigger] = []
    done = 0
    for question in subject.ask(texts, CUT):
        watch(Step("reading", done, len(texts)))
        extracted += extract(question, steps)
        done += len(question)
    unique: dict[Any, Trigger] = {}
    for each in sorted(extracted, key=lambda trigger: -trigger.attribution):
        unique.setdefault(tuple((word.text.casefold(), word.segment) for word in each.words), each)
    return list(unique.values())


def by_class_in_turn(triggers: Sequence[Trigger]) -> list[Trigger]:
    """The first of each predicted class, then the second of each, and so on.

    Otherwise a class that is always predicted with certainty could have no trigger: there,
    attention adds little to the probability.
    """
    ranks: Counter[str] = Counter()
    ranked = []
    for trigger in triggers:
        ranked.append((ranks[trigger.predicted], trigger))
        ranks[trigger.predicted] += 1
    return [trigger for _, trigger in sorted(ranked, key=lambda pair: pair[0])]


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
