"""The study `chefer`: do explanations find the words that people gave as the reason?

Chefer, Gur and Wolf, "Transformer Interpretability Beyond Attention Visualization", CVPR 2021, and
"Generic Attention-model Explainability", ICCV 2021.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from attlas.data import texts
from attlas.data.example import Example
from attlas.errors import AttlasError, UsageError
from attlas.explaining.footprint import fitting_rows
from attlas.mathematics.ranking import precision_at
from attlas.methods import METHODS
from attlas.models.asking.question import Question
from attlas.models.encoding.request import Request
from attlas.models.load import load
from attlas.models.subject import Subject
from attlas.removing.erasures import Erasures
from attlas.results import Claim, ComparedTable
from attlas.results.support import plots
from attlas.results.support.report_sections import Figure, Number
from attlas.studies.support.findings import (
    Findings,
    at_least,
    compared,
    decided,
    in_share,
    known_means,
    over_seeds,
    share_of,
    untested,
)
from attlas.studies.support.run import Run
from attlas.studies.support.several_models import described, models_at, over_models, what_varies
from attlas.studies.support.study import study
from attlas.tokens import Tokens, overlap

SOURCE = "Chefer et al. 2021"
OURS = "lrp_relevance"  # the method of the paper of CVPR
GENERIC = "generic_relevance"  # that of ICCV
BASELINES = ("raw_attention", "attention_rollout")
# In the figures, as many as lines can be told apart; the tables have all.
DRAWN = (OURS, GENERIC, *BASELINES, "attn_lrp", "random_scores")
SHARES = tuple(share / 10 for share in range(1, 10))  # of the tokens that are masked
METHODS_TRIED = (
    "lrp_relevance",
    "generic_relevance",
    "raw_attention",
    "attention_rollout",
    "effective_attention",
    "value_weighted_attention",
    "gradient_attention",
    "attattr",
    "globenc",
    "alti",
    "attn_lrp",
    "decompx",
    "random_scores",
)
DIFFERS = (
    "The model is the one named in the settings, not a BERT-base fine-tuned on these reviews.",
    "Reviews longer than the model reads are cut, and only marked words that it reads count.",
    "The paper gives its token F1 as a figure without numbers; only the order can be compared.",
    "Perturbation masks tokens of a text, 10 to 90 % of them, and follows the probability of the "
    "predicted label; the paper masks pixels, and follows accuracy.",
    "Relevance is aggregated over all layers; the released code takes the last layer for BERT.",
)

Found = dict[str, list[Mapping[str, Any]]]  # by method, for each model, what was measured


@study(
    about="token F1 against human rationales, and perturbation, for all attention methods",
    question="Do explanations by relevance find the reason better than attention alone?",
    paper="Chefer et al. 2021, arXiv:2012.09838",
    quick={
        "data": "reviews",
        "count": 6,
        "tops": (1, 2, 4),
        "methods": ("lrp_relevance", "generic_relevance", "raw_attention", "attention_rollout"),
    },
    takes=(6, 278),
)
def chefer(
    run: Run,
    *,
    model: str = "sentiment",
    data: str = "eraser_movies",
    count: int = 100,
    tops: tuple[int, ...] = (10, 20, 30, 40, 50, 60, 70, 80),
    methods: tuple[str, ...] = METHODS_TRIED,
) -> Findings:
    """Compare the highest tokens of each method with marked words, and mask them.

    Args:
        model: A classifier: a built-in name, a folder, or a folder of such folders, one for each
            seed of the training.
        data: Texts with marked words: eraser_movies, reviews, or another set with marks.
        count: How many texts.
        tops: How many highest tokens are compared with the marked ones.
        methods: The methods; the two of the papers and two baselines are needed for the claims.
    """
    examples = _examples(data, count)
    found: Found = {method: [] for method in methods}
    every = models_at(model)
    for place, each in enumerate(every):
        subject: list[Subject] = []
        for number, method in enumerate(methods):
            run.tell(f"{method} on {each}", place * len(methods) + number, len(every))

            def compute(
                method: str = method, each: str = each, subject: list[Subject] = subject
            ) -> dict[str, Any]:
                subject[:] = subject or [load(each, device=run.device)]
                return measure_method(subject[0], examples, method, tops)

            part = f"{method} on {each}"
            found[method].append(run.kept(part, compute, apart_from=("methods", "model")))
    refused = {name: why for name, each in found.items() if (why := _refusal(each))}
    known = {name: each for name, each in found.items() if name not in refused}
    return Findings(
        claims=tuple(claims_on(known, tops)),
        differs=DIFFERS,
        tables=tuple(_tables(known, tops)),
        plots=tuple(_plots(known, tops)),
        seeds=tuple(range(len(every))),
        notes=(
            described(every),
            *(f"{name} was left out: {why}" for name, why in refused.items()),
        ),
        details=known,
    )


def _refusal(models: Sequence[Mapping[str, Any]]) -> str:
    """Why a method did not run, if it refused one of the models."""
    return next((str(each["refused"]) for each in models if each["refused"]), "")


def _examples(data: str, count: int) -> list[Example]:
    drawn = texts(data, count=count, seed=0)
    marked = [each for each in drawn if each.spans]
    if not marked:
        raise UsageError(f"{data} has no marked words: the study needs a set with marks")
    return marked


def measure_method(
    subject: Subject, examples: Sequence[Example], method: str, tops: Sequence[int]
) -> dict[str, Any]:
    """Token F1 at each size, and the probability under masking, `[text, point]`; NaN if unknown."""
    asked = subject.ask([each.text for each in examples], Request(truncate=True))
    questions = [replace(each, maps=False) for each in asked]
    scored = {"f1": {}, "positive": {}, "negative": {}}  # type: dict[str, dict[int, Any]]
    for question in questions:
        try:
            scores = _scores(question, method)
        except AttlasError as problem:
            return {"refused": str(problem)}
        erasures = Erasures([question], "mask")
        for row, number in enumerate(question.order):
            content = erasures.content(number)
            own = scores[row][content]
            marks = _marks(question, row, examples[number])[content]
            scored["f1"][number] = [f1_at(own, marks, top) for top in tops]
            for name, order in (("positive", -own), ("negative", own)):
                ways = masked_sets(order)
                scored[name][number] = erasures.of(number, ways).probability.tolist()
    return {
        "refused": "",
        **{name: [each[number] for number in sorted(each)] for name, each in scored.items()},
    }


def _scores(question: Question, method: str) -> NDArray[np.float64]:
    """The scores of a batch, `[text, token]`, as many texts at a time as fit into memory."""
    chosen = METHODS[method]
    step = max(1, fitting_rows(question, chosen))
    parts = [
        chosen.score(question.rows(list(range(start, min(start + step, len(question))))), {})
        for start in range(0, len(question), step)
    ]
    return np.concatenate([each.scores.double().cpu().numpy() for each in parts])


def _marks(question: Question, row: int, example: Example) -> NDArray[np.bool_]:
    """Which tokens of a text lie in a marked word."""
    tokens: Tokens = question.inputs.tokens[row]
    spans = tokens.spans()
    return np.array(
        [at is not None and any(overlap(at, span) for span in example.spans) for at in spans]
    )


def f1_at(scores: NDArray[np.float64], marks: NDArray[np.bool_], count: int) -> float:
    """The F1 of this many highest tokens; NaN if nothing is marked, or there are fewer tokens."""
    if not marks.any() or count > len(scores):
        return float("nan")
    return float(2 * count * precision_at(scores, marks, count) / (count + int(marks.sum())))


def masked_sets(order: NDArray[np.float64]) -> NDArray[np.bool_]:
    """The sets of tokens to mask: 10 to 90 %, those with the lowest `order` first."""
    ranks = np.argsort(np.argsort(order, kind="stable"), kind="stable")
    return np.stack([ranks < round(share * len(order)) for share in SHARES])


def claims_on(found: Found, tops: Sequence[int]) -> list[Claim]:
    """The claims of the papers, decided text by text, or model by model where there are several."""
    claims = []
    for method, paper in ((OURS, "CVPR 2021"), (GENERIC, "ICCV 2021")):
        for rival in BASELINES:
            claims += [
                _better_f1(found, tops, method, rival, paper),
                _better_auc(found, method, rival, paper, "positive"),
                _better_auc(found, method, rival, paper, "negative"),
            ]
    return claims


def _better_f1(found: Found, tops: Sequence[int], method: str, rival: str, paper: str) -> Claim:
    said = f"The highest tokens of {method} are marked more often than those of {rival}"
    source = f"{SOURCE}, {paper}, ERASER movies (figure)"
    if method not in found or rival not in found:
        return untested(said, source, f"{method} or {rival} was not run")
    one, other = (f1_means(found[name]) for name in (method, rival))
    sizes = ~np.isnan(one[0]) & ~np.isnan(other[0])
    apart = [over_seeds((one - other)[:, size].tolist()) for size in np.flatnonzero(sizes)]
    wins = share_of([bool((_low(each) or 0.0) > 0) for each in apart])
    return decided(
        said,
        source,
        in_share("a higher mean token F1 at every number of tokens, its interval over models too"),
        wins,
        found=f"Mean over sizes {np.nanmean(one):.3f} against {np.nanmean(other):.3f}.",
        over=f"{len(tops)} sizes",
    )


def f1_means(models: Sequence[Mapping[str, Any]]) -> NDArray[np.float64]:
    """The mean token F1 over texts, `[model, size]`."""
    return np.stack([known_means(each["f1"]) for each in models])


def _low(figure: Figure) -> Number:
    return figure.value if figure.low is None else figure.low


def _better_auc(found: Found, method: str, rival: str, paper: str, side: str) -> Claim:
    first = "highest" if side == "positive" else "lowest"
    move = "falls faster" if side == "positive" else "stays longer"
    said = f"With its {first} tokens masked first, the prediction {move} by {method} than {rival}"
    source = f"{SOURCE}, {paper}, {side} perturbation (of pictures)"
    if method not in found or rival not in found:
        return untested(said, source, f"{method} or {rival} was not run")
    one, other = ([_areas(each[side]) for each in found[name]] for name in (method, rival))
    better = [b - a if side == "positive" else a - b for a, b in zip(one, other, strict=True)]
    return decided(
        said,
        source,
        at_least(0.0),
        over_models(better),
        found="The figure is the difference of the areas under the curve, in favour of the first.",
        over=what_varies(better),
    )


def _areas(rows: Sequence[Sequence[float | None]]) -> NDArray[np.float64]:
    """The mean over points of each text."""
    mean: NDArray[np.float64] = np.array(rows, dtype=np.float64).mean(axis=1)
    return mean


def _tables(found: Found, tops: Sequence[int]) -> list[ComparedTable]:
    middle = len(tops) // 2
    over = what_varies(next(iter(found.values()), ()))
    f1 = {
        name: over_models([[row[middle] for row in each["f1"]] for each in models])
        for name, models in found.items()
    }
    made = [compared(f"Token F1 of the {tops[middle]} highest tokens", F1_READING, f1, {}, over)]
    for side in ("positive", "negative"):
        better = "lower" if side == "positive" else "higher"
        reading = (
            f"The mean probability of the prediction while tokens are masked: {better} is better."
        )
        ours = {
            name: over_models([_areas(each[side]) for each in models])
            for name, models in found.items()
        }
        made.append(compared(f"{side} perturbation", reading, ours, {}, over))
    return made


F1_READING = "The F1 of the highest tokens with the tokens that people marked, a mean over texts."


def _plots(every: Found, tops: Sequence[int]) -> list[plots.Plot]:
    found = {name: every[name] for name in DRAWN if name in every}
    made = [
        plots.curve(
            "Token F1 by number of tokens",
            list(tops),
            {name: f1_means(each).mean(axis=0) for name, each in found.items()},
            x_label="highest tokens",
            y_label="token F1",
            reading="Higher: the highest tokens are more often those that people marked.",
        )
    ]
    for side in ("positive", "negative"):
        first = "highest" if side == "positive" else "lowest"
        made.append(
            plots.curve(
                f"{side} perturbation",
                list(SHARES),
                {
                    name: np.mean([known_means(each[side]) for each in models], axis=0)
                    for name, models in found.items()
                },
                x_label=f"share of tokens masked, {first} first",
                y_label="probability of the prediction",
                reading=f"{'Lower' if side == 'positive' else 'Higher'} is better.",
            )
        )
    return made
