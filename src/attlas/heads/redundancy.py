"""The verb `head_redundancy`: which heads attend alike."""

from collections.abc import Iterable
from dataclasses import replace
from math import log
from typing import Any

import numpy as np
import torch
from torch import Tensor

from attlas.errors import UsageError
from attlas.heads.importance import how
from attlas.heads.rankings import RANKINGS
from attlas.models.asking.question import Question
from attlas.models.asking.reading import read_attention
from attlas.models.encoding.request import Request
from attlas.models.subject import Subject, check_subject
from attlas.progress import Step, Watch
from attlas.results.head_redundancy import HeadRedundancy
from attlas.shapes import Attention, HeadPairs

VERB = "head_redundancy"
READING = (
    "How far apart the attention of two heads is: the Jensen–Shannon divergence of their rows in "
    "bits, 0 where they are the same and 1 where no token is attended to by both; the mean over "
    "tokens and texts. Heads that attend alike may still say different things: values differ."
)


def head_redundancy(
    subject: Subject,
    texts: Iterable[Any],
    *,
    truncate: bool = False,
    watch: Watch = lambda step: None,
) -> HeadRedundancy:
    """Say how far apart the attention of every two heads is, in the mean over these texts.

    Heads of different kinds of sites, encoder and decoder, are not compared.
    """
    check_subject(subject, VERB)
    given = list(texts)
    if not given:
        raise UsageError("redundancy needs at least one text")
    total, done = np.zeros(()), 0
    with torch.inference_mode(False):
        for question in subject.ask(given, Request(truncate=truncate)):
            for part in question.batches_holding(subject.sites):
                watch(Step("comparing heads", done, len(given)))
                total = total + _pairs(part)
                done += len(part)
    made = replace(
        how(subject, RANKINGS["attention"], {}),
        method=VERB,
        verb=VERB,
        reading=READING,
        paper="",
    )
    return HeadRedundancy(subject.sites, total / done, done, made)


def _pairs(question: Question) -> HeadPairs:
    """The divergence of every two heads, summed over rows; not a number where kinds differ."""
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
    """The Jensen–Shannon divergence of every two heads in bits, the mean over rows.

    It is `[batch, head, head]`.
    """
    single = _entropy(maps)
    columns = []
    for head in range(maps.shape[1]):  # one by one: a table of all pairs of maps would not fit
        middle = _entropy((maps + maps[:, head : head + 1]) / 2)
        columns.append((middle - (single + single[:, head : head + 1]) / 2).mean(dim=2))
    return torch.stack(columns, dim=2).clamp_min(0)


def _entropy(weights: Tensor) -> Tensor:
    nats: Tensor = torch.special.entr(weights.float()).sum(dim=-1)
    return nats / log(2)
