"""The verbs `prune_curve` and `head_effectiveness`: how right a model stays as heads go.

Hao, Dong, Wei and Xu, "Self-Attention Attribution", AAAI 2021.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from random import Random
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from attlas.data import ReadData, read_examples
from attlas.errors import UsageError
from attlas.heads.gold import Gold, ask_gold
from attlas.heads.importance import how, rank
from attlas.heads.rankings import RANKINGS, Ranking
from attlas.heads.switching import right_with
from attlas.mathematics.intervals import bootstrap_mean
from attlas.models.asking.question import Question
from attlas.models.subject import Subject, check_subject
from attlas.progress import Step, Watch
from attlas.results import HeadImportance, Origin
from attlas.results.prune_curve import LAYER_AXIS, SHARE_AXIS, Curve, CurvePoint, Mean, PruneCurve
from attlas.shapes import HeadScores, HeadSwitches

Right = NDArray[np.floating[Any]]  # `[point, example]`: the share of tries that were right
RANKED = 200  # texts of one data set that heads are ranked on, half of all at most
SHARES = tuple(tenth / 10 for tenth in range(11))
CURVES_READING = (
    "How many of the texts are answered rightly with so many heads switched off, the least "
    "important first. A good ranking's curve stays up long. The texts were not used to rank."
)
EFFECTIVENESS_READING = (
    "How many texts are answered rightly with so many heads switched off in every layer at once, "
    "each text by its own ranking. A ranking that knows what a prediction rests on falls at once "
    "from the top and late from the bottom. The gold label is part of the ranking, so this is a "
    "test of the attribution and not of a way to prune."
)


def prune_curve(
    subject: Subject,
    rank_on: Any,
    try_on: Any = None,
    by: Sequence[str] = (),
    *,
    text: str | None = None,
    pair: str | None = None,
    label: str | None = None,
    spans: str | None = None,
    split: str | None = None,
    count: int | None = None,
    seed: int = 0,
    steps: int = 20,
    draws: int = 5,
    truncate: bool = False,
    watch: Watch = lambda step: None,
) -> PruneCurve:
    """Switch heads off, the least important first, and see how many texts are still answered right.

    Heads are ranked by their importance in `rank_on`, by each of the rankings `by`, all if none are
    named; accuracy is that on `try_on`. Texts that are in both are not ranked on. Without `try_on`,
    the texts are divided by the `seed`: half of them rank, 200 at most, and the others are tried.
    The arguments from `text` to `count` are those of `read_examples` and hold for both data sets.
    The random ranking is the mean of `draws` orders. `steps` are those of attattr.
    """
    check_subject(subject, "prune_curve")
    chosen = _choose(by)
    if draws < 1:
        raise UsageError(f"draws are at least 1, not {draws}")
    read = partial(
        read_examples, text=text, pair=pair, label=label, spans=spans, split=split, count=count,
        seed=seed,
    )  # fmt: skip
    ranked = read(rank_on).labelled("prune_curve")
    if try_on is None:
        ranked, tried = _divide(ranked, seed)
    else:
        tried = read(try_on).labelled("prune_curve")
        ranked = _without(ranked, tried)
    with torch.inference_mode(False):
        gold = ask_gold(subject, tried, truncate=truncate)
        first = ask_gold(subject, ranked, truncate=truncate)
        importances = [rank(first, each, _options(each, steps), watch) for each in chosen]
        orders = [
            _others(each, draws) if ranking.control else [each]
            for ranking, each in zip(chosen, importances, strict=True)
        ]
        found = _pruned(gold, orders, watch)
    counts = [round(share * len(importances[0])) for share in SHARES]
    notes = (
        f"Ranked on {len(first)} texts, tried on {len(gold)} others.",
        *(f"Of those ranked on, {each}" for each in first.notes()),
        *(f"Of those tried on, {each}" for each in gold.notes()),
    )
    names = [each.name for each in chosen]
    options = {"by": names, "steps": steps, "draws": draws}
    made = _origin(subject, "prune_curve", CURVES_READING, options)
    curves = _curves(names, SHARES, counts, found, _control(chosen, found))
    return PruneCurve(SHARE_AXIS, curves, tuple(importances), len(gold), made, notes)


def head_effectiveness(
    subject: Subject,
    data: Any,
    by: Sequence[str] = ("attattr", "attention"),
    *,
    text: str | None = None,
    pair: str | None = None,
    label: str | None = None,
    spans: str | None = None,
    split: str | None = None,
    count: int | None = None,
    steps: int = 20,
    truncate: bool = False,
    watch: Watch = lambda step: None,
) -> PruneCurve:
    """Switch off the first or the last heads of every layer, by each text's own ranking of them.

    For each ranking there are two curves: from the most important head on, and from the least.
    `data` and the arguments from `text` to `count` are those of `read_examples`; every text needs a
    label.
    """
    check_subject(subject, "head_effectiveness")
    chosen = _choose(by)
    read = read_examples(
        data, text=text, pair=pair, label=label, spans=spans, split=split, count=count
    )
    with torch.inference_mode(False):
        gold = ask_gold(subject, read.labelled("head_effectiveness"), truncate=truncate)
        most = max(site.heads for site in subject.sites)
        found: list[Right] = []
        for ranking in chosen:
            found += _by_layer(gold, ranking, _options(ranking, steps), most, watch)
    names = [f"{each.name}, {end} first" for each in chosen for end in ("highest", "lowest")]
    counts = [sum(min(count, site.heads) for site in subject.sites) for count in range(most + 1)]
    options = {"by": [each.name for each in chosen], "steps": steps}
    made = _origin(subject, "head_effectiveness", EFFECTIVENESS_READING, options)
    curves = _curves(names, range(most + 1), counts, found, None)
    return PruneCurve(LAYER_AXIS, curves, (), len(gold), made, gold.notes())


def _divide(data: ReadData, seed: int) -> tuple[ReadData, ReadData]:
    """Divide the texts into some to rank heads on, and others to try them on."""
    mixed = Random(seed).sample(data.examples, len(data.examples))
    cut = min(RANKED, len(mixed) // 2)
    return replace(data, examples=mixed[:cut], left_out=[]), replace(data, examples=mixed[cut:])


def _without(data: ReadData, others: ReadData) -> ReadData:
    """Leave out the texts of another data set."""
    texts = {each.text for each in others.examples}
    return replace(data, examples=[each for each in data.examples if each.text not in texts])


def _choose(by: Sequence[str]) -> list[Ranking]:
    if isinstance(by, str):
        raise UsageError(f"by is a list of rankings, as [{by!r}]")
    return list(dict.fromkeys(RANKINGS[name] for name in by or RANKINGS.names()))


def _options(ranking: Ranking, steps: int) -> dict[str, Any]:
    return {"steps": steps} if "steps" in ranking.options else {}


def _pruned(gold: Gold, orders: Sequence[Sequence[HeadImportance]], watch: Watch) -> list[Right]:
    """Which texts stay right at each share, in the mean over the orders of each ranking."""
    cuts = [
        frozenset(each.lowest(round(share * len(each))))
        for own in orders
        for each in own
        for share in SHARES
    ]
    numbers = {cut: number for number, cut in enumerate(dict.fromkeys(cuts))}
    heads = [(site.name, head) for site in gold.subject.sites for head in range(site.heads)]
    left = torch.tensor([[[head not in cut for head in heads]] for cut in numbers])
    parts, done = [], 0
    for question in gold.questions:
        watch(Step("pruning", done, len(gold)))
        parts.append(right_with(question, left))
        done += len(question)
    right = np.concatenate(parts, axis=1)
    tried = iter(right[[numbers[cut] for cut in cuts]].reshape(-1, len(SHARES), len(gold)))
    return [np.stack([next(tried) for _ in own]).mean(axis=0) for own in orders]


def _others(importance: HeadImportance, draws: int) -> list[HeadImportance]:
    """So many random orders: the one that is given, and others."""
    random = np.random.default_rng(0)
    more = [replace(importance, mean=random.random(len(importance))) for _ in range(draws - 1)]
    return [importance, *more]


def _by_layer(
    gold: Gold, ranking: Ranking, options: Mapping[str, Any], most: int, watch: Watch
) -> tuple[Right, Right]:
    """Which texts stay right as heads go, the highest first and the lowest first."""
    parts: tuple[list[Right], list[Right]] = ([], [])
    done = 0
    for question in gold.questions:
        watch(Step(f"heads of each text by {ranking.name}", done, len(gold)))
        for part in question.batches_holding(question.subject.sites):
            scores = ranking.score_heads(part, **options)
            for sign, found in zip((1, -1), parts, strict=True):
                found.append(right_with(part, _first_off(part, sign * scores, most)))
        done += len(question)
    highest, lowest = (np.concatenate(found, axis=1) for found in parts)
    return highest, lowest


def _first_off(question: Question, scores: HeadScores, most: int) -> HeadSwitches:
    """Which heads are left of each row without none, one, … `most` of the highest of each site."""
    left, start = [], 0
    for site in question.subject.sites:
        own = scores[:, start : start + site.heads]
        start += site.heads
        ranks = own.argsort(dim=1, descending=True, stable=True).argsort(dim=1)
        left.append(ranks[None] >= torch.arange(most + 1, device=ranks.device)[:, None, None])
    return torch.cat(left, dim=-1)


def _control(chosen: Sequence[Ranking], found: Sequence[Right]) -> Right | None:
    return next((right for each, right in zip(chosen, found, strict=True) if each.control), None)


def _curves(
    names: Sequence[str],
    places: Sequence[int | float],
    counts: Sequence[int],
    found: Sequence[Right],
    control: Right | None,
) -> tuple[Curve, ...]:
    def points(right: Right) -> Iterator[CurvePoint]:
        for place, count, row in zip(places, counts, right, strict=True):
            yield CurvePoint(float(place), count, _mean(row))

    def ahead(right: Right) -> Mean | None:
        return None if control is None else _mean((right - control).mean(axis=0))

    return tuple(
        Curve(name, tuple(points(right)), _mean(right.mean(axis=0)), ahead(right))
        for name, right in zip(names, found, strict=True)
    )


def _mean(values: Right) -> Mean:
    found = bootstrap_mean([[float(value)] for value in values])
    return Mean(found.mean, found.low, found.high)


def _origin(subject: Subject, verb: str, reading: str, options: Mapping[str, Any]) -> Origin:
    made = how(subject, RANKINGS["attattr"], options)
    return replace(made, method=verb, verb=verb, reading=reading)
