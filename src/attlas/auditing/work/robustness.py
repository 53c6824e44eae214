"""Measures that run a method again, such as sensitivity: one method at a time, on few texts."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd

from attlas.auditing.plan import AuditPlan
from attlas.auditing.work.figures import COLUMNS
from attlas.errors import AttlasError
from attlas.explaining.explanations import explain
from attlas.measures import Measure, Occasion
from attlas.measures.randomisation import cascade, figure
from attlas.measures.sensitivity import sensitivities
from attlas.measures.support.recomputing import Recipe
from attlas.methods import METHODS


def measure_method(plan: AuditPlan, measure: Measure, method: str) -> tuple[pd.DataFrame, str]:
    """The figures of one measure for one method; if it cannot be applied, the reason."""
    try:
        figures = list(_figures(plan, measure, method))
    except AttlasError as problem:
        return pd.DataFrame(columns=list(COLUMNS)), " ".join(str(problem).split())
    rows = [(number, method, measure.name, "", value, np.nan) for number, value in figures]
    return pd.DataFrame(rows, columns=list(COLUMNS)), ""


def _figures(plan: AuditPlan, measure: Measure, method: str) -> Iterator[tuple[int, float]]:
    """The number and the figure of each text; some measures take all texts at once."""
    count, seed = plan.settings.texts_for_slowest, plan.settings.seed
    numbers, recipe = plan.texts.drawn(count), Recipe(METHODS[method], {})
    if measure.name == "sensitivity":
        values = sensitivities(recipe.fill(plan.texts.ask_drawn(count)), recipe, seed=seed)
        yield from zip(numbers, values.tolist(), strict=True)
    elif measure.name == "randomisation":
        cuts = cascade(recipe.fill(plan.texts.ask_drawn(count)), recipe, seed=seed)
        yield from ((numbers[index], figure(each)) for index, each in cuts.items())
    else:
        yield from _one_by_one(plan, numbers, measure, method)


def _one_by_one(
    plan: AuditPlan, numbers: list[int], measure: Measure, method: str
) -> Iterator[tuple[int, float]]:
    assert measure.ask is not None
    subject, settings = plan.texts.subject, plan.settings
    examples = [plan.texts.examples[number] for number in numbers]
    texts: list[Any] = [example.text for example in examples]
    explanations = explain(subject, texts, method, maps=False, truncate=settings.truncate)
    for number, example, explanation in zip(numbers, examples, explanations, strict=True):
        occasion = Occasion(subject, example.text, explanation, settings.seed, example)
        yield number, measure.ask(occasion)
