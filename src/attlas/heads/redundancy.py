"""The verb `head_redundancy`: which heads attend to the same tokens."""

import warnings
from dataclasses import replace
from math import log
from typing import Any

import numpy as np
import torch
from torch import Tensor

from attlas.data import read_examples
from attlas.errors import UsageError
from attlas.heads.importance import ranking_origin
from attlas.heads.rankings import RANKINGS
from attlas.models.asking.memory import telling_shortages
from attlas.models.asking.question import Question
from attlas.models.asking.reading import read_attention
from attlas.models.encoding.request import Request
from attlas.models.subject import Subject, check_subject
from attlas.progress import Step, Watch
from attlas.results.head_redundancy import HeadRedundancy
from attlas.shapes import Attention, HeadPairs
from attlas.verbs import verb

VERB = "head_redundancy"
READING = (
    "How different the attention of two heads is: the Jensen–Shannon divergence of their rows in "
    "bits, averaged over tokens and texts; 0 if they are equal, 1 if no token is attended to by "
    "both. Heads with equal attention can still differ, because their values differ."
)


@verb("comparing heads")
@telling_shortages
def head_redundancy(
    subject: Subject,
    data: Any = None,
    *,
    text: str | None = None,
    pair: str | None = None,
    label: str | None = None,
    spans: str | None = None,
    split: str | None = None,
    count: int | None = None,
    truncate: bool = False,
    watch: Watch = lambda step: None,
    texts: Any = None,
) -> HeadRedundancy:
    """Measure how different the attention of every two heads is, averaged over these texts.

    `data` and the arguments from `text` to `count` are those of `read_examples`; labels are not
    needed. A model that reads pictures takes a list of its inputs. Heads of different kinds of
    sites, encoder and decoder, are not compared. `texts` is the old name of `data`.
    """
    check_subject(subject, VERB)
    if texts is not None:
        warnings.warn("head_redundancy: texts= is called data= now", FutureWarning, stacklevel=4)
        data = texts
    notes: tuple[str, ...] = ()
    if not (subject.reads_images or subject.reads_pairs):
        columns: dict[str, Any] = {"text": text, "pair": pair, "label": label, "spans": spans}
        data = _as_read_before(subject, data)
        read = read_examples(data, split=split, count=count, **columns)
        data, notes = [each.text for each in read.examples], read.notes_on_left_out()
    inputs = list(data)
    if not inputs:
        raise UsageError(f"{VERB} needs at least one text or picture")
    total, done = np.zeros(()), 0
    with torch.inference_mode(False):
        for question in subject.ask(inputs, Request(truncate=truncate)):
            for batch in question.batches_holding(subject.sites):
                watch(Step("comparing heads", done, len(inputs)))
                total = total + _pairs(batch)
                done += len(batch)
    made = replace(
        ranking_origin(subject, RANKINGS["attention"], {}),
        method=VERB,
        verb=VERB,
        reading=READING,
        paper="",
    )
    return HeadRedundancy(subject.sites, total / done, done, made, notes)


def _as_read_before(subject: Subject, data: Any) -> Any:
    """Read a list of (text, text) as pairs of texts for one more version, and warn of it."""
    if not isinstance(data, (list, tuple)) or not data or not all(map(_is_pair, data)):
        return data
    labels = {name.casefold() for name in subject.labels}
    if all(second.casefold() in labels for _, second in data):
        return data
    warnings.warn(
        "head_redundancy: a list of (text, text) will be read as (text, label); "
        "write a pair of texts as ((text, text), label)",
        FutureWarning,
        stacklevel=5,
    )
    return [(each, None) for each in data]


def _is_pair(item: Any) -> bool:
    return isinstance(item, tuple) and len(item) == 2 and all(isinstance(x, str) for x in item)


def _pairs(question: Question) -> HeadPairs:
    """The divergence of every two heads, summed over the batch; NaN if their kinds differ."""
    calls = read_attention(question)
    count = sum(call.site.heads for call in calls)
    table = np.full((count, count), np.nan)
    starts = np.cumsum([0, *(call.site.heads for call in calls)])
    for kind in dict.fromkeys(call.site.kind for call in calls):
        own = [number for number, call in enumerate(calls) if call.site.kind == kind]
        places = np.concatenate([np.arange(starts[n], starts[n + 1]) for n in own])
        maps = torch.cat([calls[number].weights for number in own], dim=1)
        table[np.ix_(places, places)] = divergences(maps).sum(dim=0).double().cpu().numpy()
    return table


def divergences(maps: Attention) -> Tensor:
    """The Jensen–Shannon divergence of every two heads in bits, averaged over rows.

    The result is `[batch, head, head]`.
    """
    single = _entropy(maps)
    columns = []
    for head in range(maps.shape[1]):  # one at a time: a table of all pairs of maps would not fit
        middle = _entropy((maps + maps[:, head : head + 1]) / 2)
        columns.append((middle - (single + single[:, head : head + 1]) / 2).mean(dim=2))
    return torch.stack(columns, dim=2).clamp_min(0)


def _entropy(weights: Tensor) -> Tensor:
    nats: Tensor = torch.special.entr(weights.float()).sum(dim=-1)
    return nats / log(2)
