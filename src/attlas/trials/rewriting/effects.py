"""What trials report that rewrite the attention: its effect on the answer, against a ceiling.

The ceiling of a text is the effect of putting the mean in place of what the attention gives, or
that of the rewriting itself where it is larger.
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
from attlas.trials.rewriting.ceiling import find_ablations
from attlas.trials.rewriting.rewritten_answers import RewritingPlan, run_plan
from attlas.trials.support.outputs import distributions
from attlas.trials.support.scope import OpenSite, Scope
from attlas.trials.support.trial import TrialOutcome

LEAST_CEILING = 0.01  # in total variation: a site that can move the answer no further is not used
NO_CEILING = "Of one text alone there is no mean to put in place of the attention: no ceiling."
TAKEN_AWAY = (
    "The values that this model mixes are not seen apart from its weights, so the ceiling is what "
    "happens without the attention, not with its mean."
)


def try_plan(
    questions: Sequence[Question], scope: Scope, plan: RewritingPlan, doing: str
) -> TrialOutcome:
    """Rewrite the attention of every text, and say what that did; `doing` begins the sentence."""
    if scope.kind == "token":
        raise UsageError(
            f"{plan.name} rewrites rows of attention, and the scope token closes one key; allowed: "
            "readout, layer, all"
        )
    names = [_suffix(each, scope) for each in scope.each(questions[0].subject)]
    opened = [scope.opened(question) for question in questions]
    pairs = list(zip(questions, opened, strict=True))
    found = [run_plan(question, scope, sites, plan) for question, sites in pairs]
    parts = [np.concatenate(each, axis=1) for each in zip(*found, strict=True)]
    ablations, are_means = find_ablations(questions, scope, opened)
    by_batch = [largest_weights(question, scope, sites) for question, sites in pairs]
    weights = np.concatenate(by_batch, axis=1)
    texts = tuple(text for question in questions for text in question.order)
    figures: dict[str, NDArray[np.float64]] = {}
    if plan.gold is not None:
        figures["right as it is"] = _right_now(questions, plan.gold)
    limits: dict[str, float | TextValues] = {}
    for name, part, ablated, weight in zip(names, parts, ablations, weights, strict=True):
        effect = part[..., 0].mean(axis=0)
        ceiling = np.maximum(ablated, effect)
        figures[f"difference{name}"] = effect
        figures[f"median difference{name}"] = np.median(part[..., 0], axis=0)
        figures[f"flips{name}"] = part[..., 1].mean(axis=0)
        figures[f"largest weight{name}"] = weight
        figures[f"difference by its mean{name}"] = ablated
        figures[f"share of ceiling{name}"] = _shares(effect, ceiling)
        limits[f"difference{name}"] = ceiling
        if plan.gold is not None:
            figures[f"right{name}"] = (part[..., 2] == right_choices(plan.gold, texts)).mean(axis=0)
    tried = TrialOutcome(figures, texts, "", limits)
    return replace(
        tried,
        sentence=_sentence(tried, names, scope, doing),
        plots=_plots(tried, names, doing),
        notes=_notes(opened, len(texts), are_means),
        details={"scope": str(scope), "variants": plan.count, "seed": plan.seed},
    )


def right_choices(gold: Mapping[int, int], texts: Sequence[int]) -> NDArray[np.float64]:
    """The number of the right choice for each text; an error names one that has none."""
    missing = [text for text in texts if text not in gold]
    if missing:
        raise UsageError(f"gold has no choice for text {missing[0]}")
    return np.array([gold[text] for text in texts], dtype=np.float64)


def _right_now(questions: Sequence[Question], gold: Mapping[int, int]) -> NDArray[np.float64]:
    """Whether the model chooses rightly, its attention being as it is: 1 or 0."""
    found = [
        (distributions(each)[:, 0].argmax(dim=-1).cpu().numpy() == right_choices(gold, each.order))
        for each in questions
    ]
    return np.concatenate(found).astype(np.float64)


def _notes(opened: Sequence[Sequence[OpenSite]], texts: int, are_means: bool) -> tuple[str, ...]:
    held = sum(_count_held(each) for each in opened)
    sinks = f"In {held} of {texts} texts the first token holds most of the weight: held as a sink."
    ceiling = TAKEN_AWAY if not are_means else NO_CEILING if texts == 1 else ""
    return tuple(note for note in (ceiling, sinks if held else "") if note)


def _count_held(opened: Sequence[OpenSite]) -> int:
    """In how many texts of a batch a sink is held at any of the sites."""
    return int(torch.stack([each.sinks.any(dim=-1) for each in opened]).any(dim=0).sum())


def _suffix(part: Scope, whole: Scope) -> str:
    """What the figures of one of several scopes end in."""
    return "" if part == whole else f", layer {part.layer}"


def _shares(effect: TextValues, ceiling: TextValues) -> NDArray[np.float64]:
    """Not a number where the ceiling is too low to divide by."""
    shares: NDArray[np.float64] = np.full(len(effect), np.nan)
    np.divide(effect, ceiling, out=shares, where=ceiling >= LEAST_CEILING)
    return shares


def largest_weights(
    question: Question, scope: Scope, opened: Sequence[OpenSite]
) -> NDArray[np.float64]:
    """The largest share that one key has, the mean over heads and rows that count.

    `[scope in turn, batch]`: a share of what lies on the keys that may change.
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
    """Of each input, the largest shares of its rows added up, and how many rows there are."""
    free = weights.float() * entries
    total = free.sum(dim=-1)
    rows = total > 0
    shares = free.amax(dim=-1) / total.where(rows, 1)
    return shares.sum(dim=(1, 2)), rows.sum(dim=(1, 2)).to(shares)


def used(*tried: TrialOutcome) -> Estimate:
    """How much the attention is used: the effect of exchanging it, as a share of the ceiling.

    Of several trials and layers the one where it is highest, with bounds that hold for all of them
    at once. Where the ceilings are surely next to nothing the site is not used: zero.
    """
    if len({each.texts for each in tried}) != 1:
        raise UsageError("trials are put together only where they are of the same texts")
    pairs = [
        (each.figures[name], np.broadcast_to(ceiling, len(each.texts)))
        for each in tried
        for name, ceiling in each.ceilings.items()
    ]
    effects, ceilings = (np.stack(column, axis=1)[..., None] for column in zip(*pairs, strict=True))
    if np.isnan(ceilings).any():
        raise UsageError(f"a ceiling needs at least two texts, not {len(effects)}")
    highest = [bootstrap_mean(ceilings[:, number].tolist()).high for number in range(len(pairs))]
    usable = np.array(highest) >= LEAST_CEILING
    if not usable.any():
        return Estimate(0.0, 0.0, 0.0, len(effects))
    found = simultaneous_bounds(effects[:, usable], ceilings[:, usable])
    best = max(found, key=lambda each: each.mean)
    return replace(best, low=max(best.low, 0.0), high=min(best.high, 1.0))


def _sentence(tried: TrialOutcome, names: Sequence[str], scope: Scope, doing: str) -> str:
    means = {name: float(tried.figures[f"difference{name}"].mean()) for name in names}
    best = max(names, key=means.__getitem__)
    flips = float(tried.figures[f"flips{best}"].mean())
    ceiling = float(np.mean(tried.ceilings[f"difference{best}"]))
    where = "" if len(names) == 1 else f", most at{best.removeprefix(',')}"
    count = len(tried.texts)
    said = (
        f"{doing} ({scope}) moved the answer by {means[best]:.3f} on average and turned "
        f"{flips:.1%} of the predictions, on {count} text{'s' * (count > 1)}{where}"
    )
    if np.isnan(ceiling):
        return f"{said}."
    if used(tried).high == 0:
        even = "even its mean in its place moves the answer by no more than"
        return f"{said}; this attention is not used: {even} {ceiling:.3f}."
    return f"{said}: {means[best] / ceiling:.2f} of the ceiling of {ceiling:.3f}."


def _plots(tried: TrialOutcome, names: Sequence[str], doing: str) -> tuple[dict[str, Any], ...]:
    points = {
        name.removeprefix(", ") or "texts": (
            tried.figures[f"largest weight{name}"],
            tried.figures[f"median difference{name}"],
        )
        for name in names
    }
    scatter = plots.scatter(
        f"{doing}: how far the answer moves",
        points,
        x_label="largest weight",
        y_label="median difference of the output",
        reading="A text whose attention is sharp (right) and whose answer stays (low) is one that "
        "its attention does not decide.",
    )
    if len(names) == 1:
        return (scatter,)
    means = {
        name.removeprefix(", "): float(tried.figures[f"difference{name}"].mean()) for name in names
    }
    layers = plots.bars(
        f"{doing}, layer by layer",
        means,
        x_label="mean difference of the output",
        reading="The longer the bar, the more the answer depends on the attention of that layer.",
    )
    return scatter, layers
