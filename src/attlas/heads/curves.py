"""The verbs `prune_curve` and `head_effectiveness`: accuracy as heads are switched off.

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
from attlas.heads.accuracy import correct_with_heads
from attlas.heads.importance import rank, ranking_origin
from attlas.heads.labelled_questions import LabelledQuestions, ask_about_labels
from attlas.heads.rankings import RANKINGS, Ranking
from attlas.mathematics.intervals import bootstrap_mean
from attlas.models.asking.memory import telling_shortages
from attlas.models.asking.question import Question
from attlas.models.subject import Subject, check_subject
from attlas.progress import Step, Watch
from attlas.results import HeadImportance, Origin
from attlas.results.prune_curve import LAYER_AXIS, SHARE_AXIS, Curve, CurvePoint, Mean, PruneCurve
from attlas.shapes import HeadScores, HeadSwitches
from attlas.verbs import verb

Correct = NDArray[np.floating[Any]]  # `[point, example]`: the share of correct answers
RANKED = 200  # texts of one data set that heads are ranked on; at most half of all
SHARES = tuple(tenth / 10 for tenth in range(11))
CURVES_READING = (
    "The share of texts that are answered correctly with this many heads switched off, the least "
    "important first. The curve of a good ranking stays up long. Other texts were used to rank."
)
EFFECTIVENESS_READING = (
    "The share of texts that are answered correctly with this many heads switched off in every "
    "layer at once, each text by its own ranking. If a ranking knows what a prediction rests on, "
    "its curve falls at once with the highest heads first and late with the lowest first. The "
    "ranking uses the gold label, so this tests the attribution and not a way to prune."
)


@verb("pruning heads")
@telling_shortages
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
    shares: Sequence[float] = SHARES,
    truncate: bool = False,
    watch: Watch = lambda step: None,
) -> PruneCurve:
    """Switch heads off, the least important first, and measure how accurate the model stays.

    Heads are ranked on `rank_on` by each of the rankings `by`, by default all; accuracy is measured
    on `try_on`. Texts in both are not ranked on. Without `try_on`, the texts are divided by the
    `seed`: half of them, at most 200, rank, and the others are tried. The arguments from `text` to
    `count` are those of `read_examples` and hold for both data sets. The random ranking is the mean
    of `draws` orders. `steps` is the option of attattr. `shares` are the points of the curve: the
    shares of all heads that are switched off, from 0 to 1.
    """
    check_subject(subject, "prune_curve")
    chosen = _choose(by)
    if not shares or not all(0 <= share <= 1 for share in shares):
        raise UsageError(f"shares are numbers from 0 to 1, not {shares!r}")
    if draws < 1:
        raise UsageError(f"draws must be at least 1, not {draws}")
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
        to_try = ask_about_labels(subject, tried, truncate=truncate)
        to_rank = ask_about_labels(subject, ranked, truncate=truncate)
        importances = [rank(to_rank, each, _options(each, steps), watch) for each in chosen]
        orders = [
            _random_orders(each, draws) if ranking.control else [each]
            for ranking, each in zip(chosen, importances, strict=True)
        ]
        correct = _correct_at_shares(to_try, orders, shares, watch)
    counts = [round(share * len(importances[0])) for share in shares]
    notes = (
        f"Ranked on {len(to_rank)} texts, tried on {len(to_try)} others.",
        *(f"Of those ranked on, {each}" for each in to_rank.notes()),
        *(f"Of those tried on, {each}" for each in to_try.notes()),
    )
    names = [each.name for each in chosen]
    options = {"by": names, "steps": steps, "draws": draws}
    made = _origin(subject, "prune_curve", CURVES_READING, options)
    curves = _curves(names, shares, counts, correct, _control(chosen, correct))
    return PruneCurve(SHARE_AXIS, curves, tuple(importances), len(to_try), made, notes)


@verb("pruning heads")
@telling_shortages
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
    """Switch off the highest or lowest heads of every layer, ranked for each text by itself.

    For each ranking there are two curves: the most important heads first, and the least important.
    `data` and the arguments from `text` to `count` are those of `read_examples`; every text needs a
    label.
    """
    check_subject(subject, "head_effectiveness")
    chosen = _choose(by)
    read = read_examples(
        data, text=text, pair=pair, label=label, spans=spans, split=split, count=count
    )
    with torch.inference_mode(False):
        asked = ask_about_labels(subject, read.labelled("head_effectiveness"), truncate=truncate)
        most = max(site.heads for site in subject.sites)
        correct: list[Correct] = []
        for ranking in chosen:
            correct += _by_layer(asked, ranking, _options(ranking, steps), most, watch)
    names = [f"{each.name}, {end} first" for each in chosen for end in ("highest", "lowest")]
    counts = [sum(min(count, site.heads) for site in subject.sites) for count in range(most + 1)]
    options = {"by": [each.name for each in chosen], "steps": steps}
    made = _origin(subject, "head_effectiveness", EFFECTIVENESS_READING, options)
    curves = _curves(names, range(most + 1), counts, correct, None)
    return PruneCurve(LAYER_AXIS, curves, (), len(asked), made, asked.notes())


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
        raise UsageError(f"by must be a list of rankings, such as [{by!r}]")
    return list(dict.fromkeys(RANKINGS[name] for name in by or RANKINGS.names()))


def _options(ranking: Ranking, steps: int) -> dict[str, Any]:
    return {"steps": steps} if "steps" in ranking.options else {}


def _correct_at_shares(
    asked: LabelledQuestions,
    orders: Sequence[Sequence[HeadImportance]],
    shares: Sequence[float],
    watch: Watch,
) -> list[Correct]:
    """Which texts stay correct at each share: the mean over the orders of each ranking."""
    cuts = [
        frozenset(each.lowest(round(share * len(each))))
        for own in orders
        for each in own
        for share in shares
    ]
    numbers = {cut: number for number, cut in enumerate(dict.fromkeys(cuts))}
    heads = [(site.name, head) for site in asked.subject.sites for head in range(site.heads)]
    kept = torch.tensor([[[head not in cut for head in heads]] for cut in numbers])
    answers, done = [], 0
    for question in asked.questions:
        watch(Step("pruning", done, len(asked)))
        answers.append(correct_with_heads(question, kept))
        done += len(question)
    correct = np.concatenate(answers, axis=1)
    tried = iter(correct[[numbers[cut] for cut in cuts]].reshape(-1, len(shares), len(asked)))
    return [np.stack([next(tried) for _ in own]).mean(axis=0) for own in orders]


def _random_orders(importance: HeadImportance, draws: int) -> list[HeadImportance]:
    """This many random orders: this one and others."""
    random = np.random.default_rng(0)
    more = [replace(importance, mean=random.random(len(importance))) for _ in range(draws - 1)]
    return [importance, *more]


def _by_layer(
    asked: LabelledQuestions,
    ranking: Ranking,
    options: Mapping[str, Any],
    most: int,
    watch: Watch,
) -> tuple[Correct, Correct]:
    """Which texts stay correct as heads are switched off, highest first and lowest first."""
    answers: tuple[list[Correct], list[Correct]] = ([], [])
    done = 0
    for question in asked.questions:
        watch(Step(f"heads of each text by {ranking.name}", done, len(asked)))
        for batch in question.batches_holding(question.subject.sites):
            scores = ranking.score_heads(batch, **options)
            for sign, own in zip((1, -1), answers, strict=True):
                own.append(correct_with_heads(batch, _without_first(batch, sign * scores, most)))
        done += len(question)
    highest, lowest = (np.concatenate(own, axis=1) for own in answers)
    return highest, lowest


def _without_first(question: Question, scores: HeadScores, most: int) -> HeadSwitches:
    """Which heads are on in each row without the 0, 1, … `most` highest of each site."""
    kept, start = [], 0
    for site in question.subject.sites:
        own = scores[:, start : start + site.heads]
        start += site.heads
        ranks = own.argsort(dim=1, descending=True, stable=True).argsort(dim=1)
        kept.append(ranks[None] >= torch.arange(most + 1, device=ranks.device)[:, None, None])
    return torch.cat(kept, dim=-1)


def _control(chosen: Sequence[Ranking], correct: Sequence[Correct]) -> Correct | None:
    return next((own for each, own in zip(chosen, correct, strict=True) if each.control), None)


def _curves(
    names: Sequence[str],
    places: Sequence[int | float],
    counts: Sequence[int],
    correct: Sequence[Correct],
    control: Correct | None,
) -> tuple[Curve, ...]:
    def points(own: Correct) -> Iterator[CurvePoint]:
        for place, count, row in zip(places, counts, own, strict=True):
            yield CurvePoint(float(place), count, _mean(row))

    def ahead(own: Correct) -> Mean | None:
        return None if control is None else _mean((own - control).mean(axis=0))

    return tuple(
        Curve(name, tuple(points(own)), _mean(own.mean(axis=0)), ahead(own))
        for name, own in zip(names, correct, strict=True)
    )


def _mean(values: Correct) -> Mean:
    estimate = bootstrap_mean([[float(value)] for value in values])
    return Mean(estimate.mean, estimate.low, estimate.high)


def _origin(subject: Subject, verb: str, reading: str, options: Mapping[str, Any]) -> Origin:
    made = ranking_origin(subject, RANKINGS["attattr"], options)
    return replace(made, method=verb, verb=verb, reading=reading)
