"""The study `chefer`: do explanations find the words that people gave as the reason?

Chefer, Gur and Wolf, "Transformer Interpretability Beyond Attention Visualization", CVPR 2021, and
"Generic Attention-model Explainability", ICCV 2021.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from attlas.data import texts
from attlas.data.example import Example
from attlas.errors import AttlasError, UsageError
from attlas.explaining.footprint import fitting_rows
from attlas.mathematics.ranking import precision_at
from attlas.methods import METHODS
from attlas.models.asking.memory import in_fitting_batches
from attlas.models.asking.question import Question
from attlas.models.encoding.request import Request
from attlas.models.load import load
from attlas.models.subject import Subject
from attlas.removing.erasures import Erasures
from attlas.studies.support.findings import Findings
from attlas.studies.support.run import Run
from attlas.studies.support.several_models import described, models_at, named
from attlas.studies.support.study import study
from attlas.studies.tables.rationale_scores import (
    SHARES,
    Found,
    claims_on,
    score_curves,
    score_tables,
)
from attlas.tokens import Tokens, overlap

METHODS_TRIED = (
    "lrp_relevance",
    "generic_relevance",
    "raw_attention",
    "attention_rollout",
    "attention_flow",
    "effective_attention",
    "value_weighted_attention",
    "value_zeroing",
    "gradient_attention",
    "attattr",
    "globenc",
    "alti",
    "attn_lrp",
    "decompx",
    "random_scores",
)
DIGITS = 6  # behind the point, of what is kept of each text
DIFFERS = (
    "The model is the one named in the settings, not a BERT-base fine-tuned on these reviews.",
    "Reviews longer than the model reads are cut, and only marked words that it reads count.",
    "The paper gives its token F1 as a figure without numbers; only the order can be compared.",
    "Perturbation masks tokens of a text, 10 to 90 % of them, and follows the probability of the "
    "predicted label; the paper masks pixels, and follows accuracy.",
    "Relevance is aggregated over all layers; the released code takes the last layer for BERT.",
)


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
    takes=(6, 755),
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
    every = models_at(model)
    opened = cache(lambda each: load(each, device=run.device))
    found: Found = {method: [] for method in methods}
    parts = [(method, each, named(each)) for method in in_turn(methods) for each in every]
    for number, (method, each, name) in enumerate(parts):
        run.tell(f"{method} on {each}", number, len(parts))

        def compute(method: str = method, each: str = each) -> dict[str, Any]:
            return measure_method(opened(each), examples, method, tops)

        part = f"{method} on {name}"
        found[method].append(run.kept(part, compute, apart_from=("methods", "model")))
    refused = {name: why for name, each in found.items() if (why := _refusal(each))}
    known = {name: each for name, each in found.items() if name not in refused}
    return Findings(
        claims=tuple(claims_on(known, tops)),
        differs=DIFFERS,
        tables=tuple(score_tables(known, tops)),
        plots=tuple(score_curves(known, tops)),
        seeds=tuple(range(len(every))),
        notes=(
            described(every),
            *(f"{name} was left out: {why}" for name, why in refused.items()),
        ),
        details=known,
    )


def in_turn(methods: Sequence[str]) -> list[str]:
    """Methods in the order in which they are computed: what is dear comes last, if at all."""
    return sorted(methods, key=lambda each: METHODS[each].cost == "expensive")


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
            found = np.array([f1_at(own, marks, top) for top in tops])
            scored["f1"][number] = found.round(DIGITS).tolist()
            for name, order in (("positive", -own), ("negative", own)):
                ways = masked_sets(order)
                left = erasures.of(number, ways).probability.astype(np.float64)
                scored[name][number] = left.round(DIGITS).tolist()
    return {
        "refused": "",
        **{name: [each[number] for number in sorted(each)] for name, each in scored.items()},
    }


def _scores(question: Question, method: str) -> NDArray[np.float64]:
    """The scores of a batch, `[text, token]`, as many texts at a time as fit into memory."""
    chosen = METHODS[method]
    step = fitting_rows(question, chosen)

    def score(rows: Sequence[int]) -> NDArray[np.float64]:
        found = chosen.score(question.rows(list(rows)), {}).scores
        return np.asarray(found.double().cpu().numpy())

    every = range(len(question))
    too_large = f"{method} does not fit for one text of {len(question.inputs.tokens[0])} tokens"
    parts = [
        part
        for start in every[::step]
        for part in in_fitting_batches(every[start : start + step], score, too_large)
    ]
    return np.concatenate(parts)


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
