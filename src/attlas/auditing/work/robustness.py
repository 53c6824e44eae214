"""Measures that ask the method again: of few texts, one method at a time."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd

from attlas.auditing.settings import Settings
from attlas.auditing.texts import Texts
from attlas.auditing.work.judged import COLUMNS
from attlas.errors import AttlasError
from attlas.explaining import explain
from attlas.measures import MEASURES, Measure, Occasion
from attlas.measures.randomisation import cascade, figure
from attlas.measures.sensitivity import sensitivities
from attlas.measures.support.recomputing import Recipe
from attlas.methods import METHODS

TOGETHER = ("sensitivity", "randomisation")  # asked of all texts at once


def ask_again(
    texts: Texts, settings: Settings, measure: Measure, method: str
) -> tuple[pd.DataFrame, str]:
    """The figures of one measure for one method on few texts, or why there are none."""
    numbers = texts.drawn(settings.few)
    try:
        found = list(_figures(texts, numbers, settings, measure, method))
    except AttlasError as problem:
        return pd.DataFrame(columns=list(COLUMNS)), " ".join(str(problem).split())
    rows = [(number, method, measure.name, "", value, np.nan) for number, value in found]
    return pd.DataFrame(rows, columns=list(COLUMNS)), ""


def _figures(
    texts: Texts, numbers: list[int], settings: Settings, measure: Measure, method: str
) -> Iterator[tuple[int, float]]:
    recipe = Recipe(METHODS[method], {})
    questions = recipe.fill(texts.ask_drawn(settings.few))
    if measure.name == "sensitivity":
        found = sensitivities(questions, recipe, seed=settings.seed)
        yield from zip(numbers, found.tolist(), strict=True)
    elif measure.name == "randomisation":
        cuts = cascade(questions, recipe, seed=settings.seed)
        yield from ((numbers[local], figure(each)) for local, each in cuts.items())
    else:
        yield from _one_by_one(texts, numbers, settings, measure, method)


def _one_by_one(
    texts: Texts, numbers: list[int], settings: Settings, measure: Measure, method: str
) -> Iterator[tuple[int, float]]:
    assert measure.ask is not None
    asked: list[Any] = [texts.examples[number].text for number in numbers]
    given = explain(texts.subject, asked, method, maps=False, truncate=settings.truncate)
    for number, text, explanation in zip(numbers, asked, given, strict=True):
        example = texts.examples[number]
        occasion = Occasion(texts.subject, text, explanation, settings.seed, example)
        yield number, measure.ask(occasion)


def wanted(texts: Texts, settings: Settings) -> list[tuple[Measure, str]]:
    """Which measures are asked of which methods: of those that are cheap, where there is need."""
    edited = any(each.fields.get("revised_text") for each in texts.examples)
    measures = [each for each in settings.found(asking=True) if "edits" not in each.needs or edited]
    cheap = [name for name in settings.methods if METHODS[name].cost == "cheap"]
    return [(MEASURES[each.name], name) for each in measures for name in cheap]
