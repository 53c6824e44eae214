"""The same questions put to a transformer: trials of its attention, run on a list of texts."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import torch

from attlas.data import texts
from attlas.models.asking.filling import fill
from attlas.models.encoding.request import Request
from attlas.models.load import load
from attlas.models.subject import Subject
from attlas.results import ComparedTable
from attlas.studies.support.findings import compared, over_texts
from attlas.trials import TRIALS

ON_TRANSFORMER = {
    "τ of attention and gradient": ("agreement", "τ of attention and gradient"),
    "τ of attention and leave-one-out": ("agreement", "τ of attention and leave-one-out"),
    "τ of gradient and leave-one-out": ("agreement", "τ of gradient and leave-one-out"),
    "median change under permutation": ("permutation", "median difference"),
    "ε-max JSD at ε = 0.05": ("adversarial_attention", "ε-max JSD at ε = 0.05"),
    "ε-max JSD at ε = 0.01": ("adversarial_attention", "ε-max JSD"),
}

MODEL, TEXTS = "sentiment", "reviews"  # both come with Attlas


def open_transformer(device: str | None) -> Subject:
    """The built-in sentiment model."""
    return load(MODEL, device=device)


def transformer_texts(count: int, seed: int = 0) -> list[Any]:
    """The built-in reviews, or some of them."""
    return [each.text for each in texts(TEXTS, count=count, seed=seed)]


def trial_figures(
    subject: Subject, asked: Sequence[Any], trial: str, seed: int = 0, **options: Any
) -> dict[str, list[float]]:
    """The figures of a trial with its usual scope, one value for each text."""
    chosen = TRIALS[trial]
    with torch.inference_mode(False):
        questions = list(subject.ask(list(asked), Request(truncate=True)))
        held = fill(questions) if chosen.fills else questions
        outcome = chosen.run(held, chosen.scope, seed=seed, **options)
    return {name: np.asarray(values).tolist() for name, values in outcome.figures.items()}


def transformer_part(device: str | None, count: int) -> dict[str, dict[str, list[float]]]:
    """The trials of Jain and Wallace's experiments, on so many texts; nothing for none."""
    if not count:
        return {}
    subject, asked = open_transformer(device), transformer_texts(count)
    return {
        trial: trial_figures(subject, asked, trial)
        for trial in ("agreement", "permutation", "adversarial_attention")
    }


def transformer_tables(found: Mapping[str, Any]) -> Iterator[ComparedTable]:
    """The same figures of the transformer; nothing was published for one."""
    if found:
        yield compared(
            "The same on a transformer",
            "The built-in sentiment model on built-in reviews, at the layer that is read out. "
            "Means over texts.",
            {
                name: over_texts(found[trial][each])
                for name, (trial, each) in ON_TRANSFORMER.items()
            },
            {},
            over="texts",
        )
