"""What Jain and Wallace measure on one trained model, text by text, and their figures."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Generator, Tensor

from attlas.mathematics.divergences import total_variation
from attlas.mathematics.other_weights import AdversaryPlan, Candidates, far_candidates, permuted
from attlas.mathematics.rank_agreement import kendall_by_text
from attlas.results.support import plots
from attlas.results.support.report_sections import Figure
from attlas.studies.recurrent import published
from attlas.studies.recurrent.readings import (
    FixedReading,
    gradient_along,
    gradient_importance,
    gradient_size,
    leave_one_out,
    readings,
)
from attlas.studies.recurrent.training import TrainedModel
from attlas.studies.support.findings import over_seeds

SHOWN = 600  # points of a scatter


Key = tuple[str, str, str]  # task, encoder, attention
Parts = Mapping[Key, Sequence[Mapping[str, Any]]]  # for each seed, what was found
ADDITIVE = "additive"

LOOSE, TIGHT = 0.05, 0.01  # ε of the selection: their code's, and the paper's for classification
COPIES_AT_ONCE = 2**22  # permuted weights in one call
SHOWN_LENGTHS = (8, 30)  # tokens of the text whose two attentions are shown
DIGITS = 4  # that are kept of a text's figure

TAU_GRADIENT, TAU_REMOVAL = "tau_gradient", "tau_leave_one_out"
TAU_BOTH = "tau_gradient_leave_one_out"
TAU_SIZE, TAU_ALONG = "tau_gradient_size", "tau_gradient_along"
IMPORTANCES = {
    TAU_GRADIENT: gradient_importance,
    TAU_ALONG: gradient_along,
    TAU_SIZE: gradient_size,
}
CHANGE, FAR_LOOSE, FAR_TIGHT = "permutation_change", "far_within_0.05", "far_within_0.01"
PREDICTED, LARGEST = "predicted", "largest_weight"
SIGNIFICANT = {name: f"significant_{name}" for name in (TAU_GRADIENT, TAU_REMOVAL)}


@dataclass(frozen=True)
class ExplanationPlan:
    """How much is asked of each text."""

    permutations: int = 100
    adversary: AdversaryPlan = AdversaryPlan()  # noqa: RUF009
    removes: bool = True  # leave-one-out costs a run for each token
    seed: int = 0


def explanation_figures(trained: TrainedModel, plan: ExplanationPlan) -> dict[str, Any]:
    """All figures of each test text, and one text with two attentions, as JSON."""
    random = torch.Generator().manual_seed(plan.seed)
    columns: dict[str, NDArray[np.float64]] = {}
    shown: dict[str, Any] | None = None
    for reading in readings(trained.model, trained.test):
        found, candidates = _of_reading(trained, reading, plan, random)
        rows = reading.batch.numbers.cpu().numpy()
        for name, values in found.items():
            column = columns.setdefault(name, np.full(len(trained.test), np.nan))
            column[rows] = values
        shown = _better(shown, _example(trained, reading, candidates))
    kept = {
        name: [round(float(each), DIGITS) for each in values] for name, values in columns.items()
    }
    classes = trained.model.config.num_labels
    return {**trained.figures, "classes": classes, "texts": kept, "example": shown}


def _of_reading(
    trained: TrainedModel, reading: FixedReading, plan: ExplanationPlan, random: Generator
) -> tuple[dict[str, NDArray[np.float64]], Candidates]:
    weights, free, model = reading.weights, reading.free, trained.model
    pairs = {name: (weights, each(model, reading.batch)) for name, each in IMPORTANCES.items()}
    if plan.removes:
        removal = leave_one_out(model, reading, trained.pad)
        pairs |= {TAU_REMOVAL: (weights, removal), TAU_BOTH: (pairs[TAU_GRADIENT][1], removal)}
    found: dict[str, NDArray[np.float64]] = {}
    for name, (first, second) in pairs.items():
        agreement = kendall_by_text(first.double(), second.double(), free)
        found[name] = agreement.tau
        if name in SIGNIFICANT:
            found[SIGNIFICANT[name]] = agreement.significant
    candidates = far_candidates(weights, free, reading.answer, plan.adversary, random)
    found |= {
        PREDICTED: _array(reading.predicted),
        LARGEST: _array(reading.largest),
        CHANGE: _array(permutation_change(reading, plan.permutations, random)),
        FAR_LOOSE: _array(candidates.farthest(LOOSE)),
        FAR_TIGHT: _array(candidates.farthest(TIGHT)),
    }
    return found, candidates


def agreement_figures(trained: TrainedModel) -> dict[str, float]:
    """τ of attention with each kind of gradient importance, the means over the test texts."""
    found: dict[str, list[float]] = {name: [] for name in IMPORTANCES}
    for reading in readings(trained.model, trained.test):
        for name, importance in IMPORTANCES.items():
            scores = importance(trained.model, reading.batch).double()
            taus = kendall_by_text(reading.weights.double(), scores, reading.free).tau
            found[name] += taus.tolist()
    return {name: float(np.nanmean(each)) for name, each in found.items()}


@torch.no_grad()
def permutation_change(reading: FixedReading, count: int, random: Generator) -> Tensor:
    """The median over permutations of the change of the answer, in total variation, `[text]`."""
    at_once = max(1, COPIES_AT_ONCE // reading.weights.numel())
    changes = []
    for start in range(0, count, at_once):
        copies = min(at_once, count - start)
        answers = reading.answer(permuted(reading.weights, reading.free, copies, random))
        changes.append(total_variation(answers, reading.clean.expand_as(answers)))
    # numpy's median: of an even number of permutations, the mean of the middle two.
    return torch.cat(changes).double().quantile(0.5, dim=0)


def _example(
    trained: TrainedModel, reading: FixedReading, found: Candidates
) -> dict[str, Any] | None:
    """The text of known words whose attention moved farthest while its answer stayed."""
    length = reading.free.sum(dim=-1)
    strange = reading.batch.input_ids == trained.tokenizer.unk_token_id
    fits = (length >= SHOWN_LENGTHS[0]) & (length <= SHOWN_LENGTHS[1]) & ~strange.any(dim=-1)
    far = torch.where(fits, found.farthest(TIGHT), -1.0)
    row = int(far.argmax())
    if far[row] < 0:
        return None
    chosen = found.chosen(TIGHT, reading.weights)
    answers = reading.answer(torch.stack([reading.weights, chosen]))[:, row]
    free = reading.free[row]
    ids = reading.batch.input_ids[row][free].tolist()
    return {
        "tokens": trained.tokenizer.convert_ids_to_tokens(ids),
        "own": reading.weights[row][free].tolist(),
        "other": chosen[row][free].tolist(),
        "distance": float(far[row]),
        "label": trained.model.config.id2label[int(reading.predicted[row])],
        "probabilities": answers[:, reading.predicted[row]].tolist(),
    }


def _better(one: dict[str, Any] | None, other: dict[str, Any] | None) -> dict[str, Any] | None:
    known = [each for each in (one, other) if each is not None]
    return max(known, key=lambda each: float(each["distance"]), default=None)


def mean_of(found: Mapping[str, Any], name: str, predicted: int | None = None) -> float:
    """The mean of a figure over texts, or over those predicted as one class; NaN if none is."""
    values = _column(found, name)
    if predicted is not None:
        values = values[_column(found, PREDICTED) == predicted]
    known = values[~np.isnan(values)]
    return float(known.mean()) if len(known) else float("nan")


def median_of(found: Mapping[str, Any], name: str) -> float:
    """The median of a figure over texts."""
    return float(np.nanmedian(_column(found, name)))


def by_largest(
    found: Mapping[str, Any], name: str, edges: tuple[float, ...]
) -> list[NDArray[np.float64]]:
    """The values of a figure, by bins of the largest weight; the last edge is inside."""
    largest, values = _column(found, LARGEST), _column(found, name)
    bins = np.clip(np.digitize(largest, edges) - 1, 0, len(edges) - 2)
    return [values[(bins == each) & ~np.isnan(values)] for each in range(len(edges) - 1)]


def _column(found: Mapping[str, Any], name: str) -> NDArray[np.float64]:
    """One figure of all texts; unknown ones, null in JSON, are NaN."""
    values = found["texts"].get(name, [])
    return np.array([np.nan if each is None else each for each in values], dtype=np.float64)


def _array(values: Tensor) -> NDArray[np.float64]:
    return values.detach().double().cpu().numpy()


def over_models(parts: Sequence[Mapping[str, Any]], value: Callable[[Any], float]) -> Figure:
    """The mean of a value over the seeds in which it is known, with its interval."""
    known = [found for found in map(value, parts) if not np.isnan(found)]
    return over_seeds(known) if known else Figure(None)


def class_mean(name: str) -> Callable[[Mapping[str, Any]], float]:
    """The mean over texts: of the means of both predicted classes, where there are two."""

    def value(found: Mapping[str, Any]) -> float:
        if found["classes"] > 2:
            return mean_of(found, name)
        return float(np.nanmean([mean_of(found, name, each) for each in range(2)]))

    return value


def plots_of(parts: Parts) -> Iterator[Mapping[str, Any]]:
    """The paper's figures: violins, histograms as violins, scatter, and the heat-map pair."""
    first = {key: each[0] for key, each in parts.items() if each and key[2] == ADDITIVE}
    yield from _violins(first)
    yield plots.violins(
        "How far attention can be without a change of the output",
        {
            f"{task}, {encoder}": part["texts"][FAR_LOOSE]
            for (task, encoder, _), part in first.items()
        },
        x_label="",
        y_label="ε-max JSD at ε = 0.05",
        reading="A violin is all test texts of one model, of the first seed. At the top, attention "
        "could be as different as can be.",
    )
    yield plots.scatter(
        "Adversarial attention by the largest weight",
        {
            f"{task}, {encoder}": tuple(
                part["texts"][name][:SHOWN] for name in (LARGEST, FAR_LOOSE)
            )
            for (task, encoder, _), part in first.items()
        },
        x_label="largest weight of the model's own attention",
        y_label="ε-max JSD at ε = 0.05",
        reading="A point is a text of the first seed.",
    )
    for (task, encoder, _), part in first.items():
        if part["example"]:
            yield _pair(task, encoder, part["example"])
            break


def _violins(first: Mapping[Key, Mapping[str, Any]]) -> Iterator[Mapping[str, Any]]:
    for task in dict.fromkeys(key[0] for key in first):
        groups: dict[str, Any] = {}
        for (each, encoder, _), part in first.items():
            if each == task:
                apart = by_largest(part, CHANGE, published.EDGES)
                groups |= {
                    f"{encoder}, {name}": values
                    for name, values in zip(published.BINS, apart, strict=True)
                    if len(values)
                }
        yield plots.violins(
            f"Change of the output under permutation: {task}",
            groups,
            x_label="encoder, and largest weight",
            y_label="median total variation",
            reading="A violin is the test texts whose largest weight lies in a range, for the "
            "first seed. Near zero, it does not matter which token has which weight.",
        )


def _pair(task: str, encoder: str, shown: Mapping[str, Any]) -> Mapping[str, Any]:
    own, other = shown["probabilities"]
    return plots.maps(
        f"Two attentions, one output ({task}, {encoder})",
        ["weight"],
        shown["tokens"],
        {"the model's own": [shown["own"]], "adversarial": [shown["other"]]},
        reading=f"Both give {shown['label']!r}, with {own:.3f} and {other:.3f}. Their distance is "
        f"{shown['distance']:.2f} (Jensen–Shannon).",
    )
