"""The effect of rewritten attention on the answer, compared with a ceiling.

The ceiling of a text is the effect of replacing the attention's output by its mean, or that of the
rewriting itself if it is larger.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from attlas.errors import UsageError
from attlas.mathematics.intervals import Estimate, bootstrap_mean, simultaneous_bounds
from attlas.models.asking.question import Question
from attlas.models.asking.reading import fold_attention
from attlas.models.tap.call import Call
from attlas.results.support import plots
from attlas.shapes import Attention, EntryMarks, TextValues
from attlas.trials.rewriting.rewritings import shuffle_columns
from attlas.trials.rewriting.rewritten_answers import RewritingPlan, find_ablations, run_plan
from attlas.trials.support.outputs import distributions
from attlas.trials.support.scope import OpenSite, Scope
from attlas.trials.support.trial import TrialOutcome

LEAST_CEILING = 0.01  # in total variation; a site with a lower ceiling is not used
NO_CEILING = "There is no ceiling: it needs the mean over texts, and there is one text."
TAKEN_AWAY = (
    "The values of this model cannot be read apart from its weights, so the ceiling is the effect "
    "of removing the attention, not of replacing it by its mean."
)


def run_rewriting_trial(
    questions: Sequence[Question], scope: Scope, plan: RewritingPlan, doing: str
) -> TrialOutcome:
    """Rewrite the attention of every text and report the effect; `doing` begins the sentence."""
    if scope.kind == "token":
        raise UsageError(
            f"{plan.name} rewrites rows of attention, and the scope token closes one key; "
            "allowed: readout, layer, all"
        )
    names = [_suffix(each, scope) for each in scope.in_turn(questions[0].subject)]
    opened = [scope.open_sites(question) for question in questions]
    pairs = list(zip(questions, opened, strict=True))
    found = [run_plan(question, scope, sites, plan) for question, sites in pairs]
    changes = [np.concatenate(each, axis=1) for each in zip(*found, strict=True)]
    ablations, are_means = find_ablations(questions, scope, opened)
    by_batch = [largest_weights(question, scope, sites) for question, sites in pairs]
    weights = np.concatenate(by_batch, axis=1)
    texts = tuple(text for question in questions for text in question.order)
    figures: dict[str, NDArray[np.float64]] = {}
    if plan.gold is not None:
        figures["right as it is"] = _right_now(questions, plan.gold)
    limits: dict[str, float | TextValues] = {}
    for name, change, ablated, weight in zip(names, changes, ablations, weights, strict=True):
        effect = change[..., 0].mean(axis=0)
        ceiling = np.maximum(ablated, effect)
        figures[f"difference{name}"] = effect
        figures[f"median difference{name}"] = np.median(change[..., 0], axis=0)
        figures[f"flips{name}"] = change[..., 1].mean(axis=0)
        figures[f"largest weight{name}"] = weight
        figures[f"difference by its mean{name}"] = ablated
        figures[f"share of ceiling{name}"] = _shares(effect, ceiling)
        limits[f"difference{name}"] = ceiling
        if plan.gold is not None:
            right = change[..., 2] == right_choices(plan.gold, texts)
            figures[f"right{name}"] = right.mean(axis=0)
    outcome = TrialOutcome(figures, texts, "", limits)
    return replace(
        outcome,
        sentence=_sentence(outcome, names, scope, doing),
        plots=_plots(outcome, names, doing),
        notes=_notes(opened, len(texts), are_means),
        details={"scope": str(scope), "variants": plan.count, "seed": plan.seed},
    )


def right_choices(gold: Mapping[int, int], texts: Sequence[int]) -> NDArray[np.float64]:
    """The number of the right choice for each text; an error names a text that has none."""
    missing = [text for text in texts if text not in gold]
    if missing:
        raise UsageError(f"gold has no choice for text {missing[0]}")
    return np.array([gold[text] for text in texts], dtype=np.float64)


def _right_now(questions: Sequence[Question], gold: Mapping[int, int]) -> NDArray[np.float64]:
    """1 where the model chooses rightly with its own attention, else 0."""
    found = [
        (distributions(each)[:, 0].argmax(dim=-1).cpu().numpy() == right_choices(gold, each.order))
        for each in questions
    ]
    return np.concatenate(found).astype(np.float64)


def _notes(opened: Sequence[Sequence[OpenSite]], texts: int, are_means: bool) -> tuple[str, ...]:
    held = sum(_count_held(each) for each in opened)
    sinks = (
        f"In {held} of {texts} texts the first token has most of the weight: kept fixed as a sink."
    )
    ceiling = TAKEN_AWAY if not are_means else NO_CEILING if texts == 1 else ""
    return tuple(note for note in (ceiling, sinks if held else "") if note)


def _count_held(opened: Sequence[OpenSite]) -> int:
    """The number of texts in a batch that have a sink at any of the sites."""
    return int(torch.stack([each.sinks.any(dim=-1) for each in opened]).any(dim=0).sum())


def _suffix(one: Scope, whole: Scope) -> str:
    """How the names of figures end if there are several scopes."""
    return "" if one == whole else f", layer {one.layer}"


def _shares(effect: TextValues, ceiling: TextValues) -> NDArray[np.float64]:
    """The effect as a share of the ceiling; NaN where the ceiling is too low to divide by."""
    shares: NDArray[np.float64] = np.full(len(effect), np.nan)
    np.divide(effect, ceiling, out=shares, where=ceiling >= LEAST_CEILING)
    return shares


def largest_weights(
    question: Question, scope: Scope, opened: Sequence[OpenSite]
) -> NDArray[np.float64]:
    """The largest share of a single key, a mean over heads and counted rows, `[scope, batch]`.

    It is a share of the weight on the keys that may change.
    """
    named = {each.site.name: each for each in opened}

    def keep(call: Call) -> tuple[Tensor, Tensor]:
        return largest_shares(call.weights, named[call.site.name].entries(call.visible))

    folded = fold_attention(question, keep, [each.site for each in opened])
    held = [torch.stack(each) for each in folded.held]
    sums = torch.stack(held).double().cpu().numpy()  # `[site, sum and count, batch]`
    if scope.kind == "all":
        sums = sums.sum(axis=0, keepdims=True)
    means: NDArray[np.float64] = np.full(sums[:, 0].shape, np.nan)
    np.divide(sums[:, 0], sums[:, 1], out=means, where=sums[:, 1] > 0)
    return means


def largest_shares(weights: Attention, entries: EntryMarks) -> tuple[Tensor, Tensor]:
    """For each input: the sum of its rows' largest shares, and the number of rows."""
    free = weights.float() * entries
    total = free.sum(dim=-1)
    rows = total > 0
    shares = free.amax(dim=-1) / total.where(rows, 1)
    return shares.sum(dim=(1, 2)), rows.sum(dim=(1, 2)).to(shares)


def attention_use(*outcomes: TrialOutcome) -> Estimate:
    """How much the attention is used: the effect of rewriting it, as a share of the ceiling.

    The highest share of all trials and layers, with bounds that hold for all of them at once. It is
    zero where the ceilings are next to nothing: the site is not used.
    """
    if len({each.texts for each in outcomes}) != 1:
        raise UsageError("trials can only be combined if they are of the same texts")
    pairs = [
        (each.figures[name], np.broadcast_to(ceiling, len(each.texts)))
        for each in outcomes
        for name, ceiling in each.ceilings.items()
    ]
    effects, ceilings = (np.stack(column, axis=1)[..., None] for column in zip(*pairs, strict=True))
    if np.isnan(ceilings).any():
        raise UsageError(f"a ceiling needs at least two texts, and there is {len(effects)}")
    highest = [bootstrap_mean(ceilings[:, number].tolist()).high for number in range(len(pairs))]
    usable = np.array(highest) >= LEAST_CEILING
    if not usable.any():
        return Estimate(0.0, 0.0, 0.0, len(effects))
    found = simultaneous_bounds(effects[:, usable], ceilings[:, usable])
    best = max(found, key=lambda each: each.mean)
    return replace(best, low=max(best.low, 0.0), high=min(best.high, 1.0))


def shuffled_moves(questions: Sequence[Question], repeats: int, seed: int) -> dict[int, float]:
    """How far the answer to each text moves if all its attention weights are shuffled, on average.

    A total variation, for every layer at once and all rows with a path to the readout.
    """
    plan = RewritingPlan("permutation of columns", shuffle_columns, repeats, seed)
    scope = Scope("all")
    found: dict[int, float] = {}
    for question in questions:
        (changes,) = run_plan(question, scope, scope.open_sites(question), plan)
        found |= zip(question.order, changes[..., 0].mean(axis=0).tolist(), strict=True)
    return found


def _sentence(outcome: TrialOutcome, names: Sequence[str], scope: Scope, doing: str) -> str:
    means = {name: float(outcome.figures[f"difference{name}"].mean()) for name in names}
    best = max(names, key=means.__getitem__)
    flips = float(outcome.figures[f"flips{best}"].mean())
    ceiling = float(np.mean(outcome.ceilings[f"difference{best}"]))
    where = "" if len(names) == 1 else f", most at{best.removeprefix(',')}"
    count = len(outcome.texts)
    said = (
        f"{doing} ({scope}) moved the answer by {means[best]:.3f} on average and flipped "
        f"{flips:.1%} of the predictions, on {count} text{'s' * (count > 1)}{where}"
    )
    if np.isnan(ceiling):
        return f"{said}."
    if attention_use(outcome).high == 0:
        even = "even replacing it by its mean moves the answer by only"
        return f"{said}; this attention is not used: {even} {ceiling:.3f}."
    return f"{said}: {means[best] / ceiling:.2f} of the ceiling of {ceiling:.3f}."


def _plots(outcome: TrialOutcome, names: Sequence[str], doing: str) -> tuple[dict[str, Any], ...]:
    points = {
        name.removeprefix(", ") or "texts": (
            outcome.figures[f"largest weight{name}"],
            outcome.figures[f"median difference{name}"],
        )
        for name in names
    }
    scatter = plots.scatter(
        f"{doing}: how far the answer moves",
        points,
        x_label="largest weight",
        y_label="median difference of the output",
        reading="A point is a text. If its attention is sharp (right) and its answer stays (low), "
        "the attention does not decide the answer.",
    )
    if len(names) == 1:
        return (scatter,)
    means = {
        name.removeprefix(", "): float(outcome.figures[f"difference{name}"].mean())
        for name in names
    }
    layers = plots.bars(
        f"{doing}, layer by layer",
        means,
        x_label="mean difference of the output",
        reading="The longer the bar, the more the answer depends on the attention of that layer.",
    )
    return scatter, layers
