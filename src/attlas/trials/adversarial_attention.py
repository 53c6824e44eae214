"""Adversarial attention: how different can attention be if the output must stay the same?"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import torch

from attlas.errors import UsageError
from attlas.mathematics.intervals import bootstrap_mean
from attlas.models.asking.filling import FILLER
from attlas.models.asking.memory import in_fitting_batches, rows_of
from attlas.models.asking.question import Question
from attlas.results.support import plots
from attlas.shapes import TextValues
from attlas.trials.searching.leeway import largest_divergence, moved_mass
from attlas.trials.searching.search import FarthestAttention, Search, SearchPlan
from attlas.trials.support.scope import Scope
from attlas.trials.support.trial import TrialOutcome, trial

TIGHT, LOOSE = 0.01, 0.05
DISTANCE, SHARE, MASS = "ε-max JSD", "share of the largest JSD", "weight that may move"
SHOWN = 3  # texts whose adversarial attention is plotted


@trial(
    cost="expensive",
    paper="arXiv:1902.10186",
    reading="How far from the model's own attention is the farthest attention that leaves the "
    "output the same, within ε = 0.01 in total variation?",
    does_not_show="That the model's own attention is unfaithful: another would do as well, but "
    "this one may still have done the work, and no weights of a model need produce the other.",
    needs=("attention", "branches"),
    fills=True,
)
def adversarial_attention(
    questions: Sequence[Question],
    scope: Scope = Scope(),  # noqa: B008
    *,
    seed: int = 0,
    candidates: int = 5,
    steps: int = 30,
    rate: float = 0.7,
    rounds: int = 80,
) -> TrialOutcome:
    """Search for attention that is as far as possible from the model's and keeps its output.

    For each text, `candidates` are moved by `steps` of Adam away from the model's attention and
    from each other, and pulled back where the output leaves the tolerance. Before and after, in
    `rounds`, rows of candidates move to keys drawn at random. The farthest candidate within the
    tolerance counts. It is a lower bound: a longer search may find one farther away.
    """
    if candidates < 1 or min(steps, rounds) < 0:
        raise UsageError(
            f"candidates must be at least 1, not {candidates}, and steps and rounds at least 0, "
            f"not {steps} and {rounds}"
        )
    plan = SearchPlan((TIGHT, LOOSE), candidates, steps, rate, rounds)
    found = [each for question in questions for each in _search(question, scope, plan, seed)]
    texts = tuple(number for question, _ in found for number in question.order)
    columns = [_figures(farthest) for _, farthest in found]
    figures = {name: np.concatenate([each[name] for each in columns]) for name in columns[0]}
    largest = np.concatenate([_array(largest_divergence(each.leeways)) for _, each in found])
    return TrialOutcome(
        figures=figures,
        texts=texts,
        sentence=_sentence(figures, seed),
        ceilings={DISTANCE: largest, at(LOOSE, DISTANCE): largest, SHARE: 1.0, MASS: 1.0},
        plots=(_by_largest_weight(found, figures), *_examples(found)),
        notes=(f"Scope: {scope}.", "Divergences are over the keys that may change."),
        details={
            "candidates": candidates,
            "steps": steps,
            "rate": rate,
            "rounds": rounds,
            "seed": seed,
        },
    )


def at(tolerance: float, name: str) -> str:
    """The name of a figure at another tolerance than the first."""
    return f"{name} at ε = {tolerance:g}"


def _search(
    question: Question, scope: Scope, plan: SearchPlan, seed: int
) -> Iterator[tuple[Question, FarthestAttention]]:
    """Search for as many texts at once as make a good batch."""
    tokens = len(question.inputs.tokens[0]) * plan.copies
    most = rows_of(question.subject.device, tokens)

    def work(rows: Sequence[int]) -> tuple[Question, FarthestAttention]:
        chosen = question.rows(rows)
        return chosen, Search(chosen, scope, plan).run(seed)

    for start in range(0, len(question), most):
        rows = range(start, min(start + most, len(question)))
        yield from in_fitting_batches(
            rows, work, f"{plan.copies} candidates for one text do not fit"
        )


def _figures(found: FarthestAttention) -> Mapping[str, TextValues]:
    largest = largest_divergence(found.leeways)
    nothing = torch.where(largest.isnan(), torch.nan, 0.0)
    tight, loose = (found.distance + nothing).unbind()
    return {
        DISTANCE: _array(tight),
        SHARE: _array(tight / largest),
        at(LOOSE, DISTANCE): _array(loose),
        at(LOOSE, SHARE): _array(loose / largest),
        MASS: _array(moved_mass(found.leeways)),
    }


def _array(values: torch.Tensor) -> TextValues:
    return values.detach().double().cpu().numpy()


def _sentence(figures: Mapping[str, TextValues], seed: int) -> str:
    known = figures[SHARE][~np.isnan(figures[SHARE])]
    if not len(known):
        return "No text has attention that can be moved."
    share = bootstrap_mean([[value] for value in known], seed)
    distance, loose = (np.nanmean(figures[name]) for name in (DISTANCE, at(LOOSE, SHARE)))
    return (
        f"With the output within {TIGHT:g}, attention can be {distance:.2f} from the model's own "
        f"(Jensen–Shannon), {share.mean:.0%} of the largest possible distance ({share.low:.0%} to "
        f"{share.high:.0%}; {share.inputs} texts); within {LOOSE:g}, {loose:.0%}."
    )


def _by_largest_weight(
    found: Sequence[tuple[Question, FarthestAttention]], figures: Mapping[str, TextValues]
) -> Mapping[str, Any]:
    """The distance against the largest weight on one key, as Jain and Wallace plot it."""
    largest = [
        torch.stack([own.own.amax(dim=(1, 2, 3)) for own in each.leeways]).amax(dim=0)
        for _, each in found
    ]
    names = np.array([target.name for question, _ in found for target in question.targets])
    x = _array(torch.cat(largest))
    return plots.scatter(
        "How far attention can be moved without moving the output",
        {
            str(name): (x[names == name], figures[DISTANCE][names == name])
            for name in dict.fromkeys(names.tolist())
        },
        x_label="largest weight on one key",
        y_label=DISTANCE,
        reading="A point is a text. High points are texts whose attention could be very different "
        "with the same output; points at the right have sharp attention.",
    )


def _examples(found: Sequence[tuple[Question, FarthestAttention]]) -> Iterator[Mapping[str, Any]]:
    """The model's attention beside the farthest one, as means over heads."""
    rows = [(question, each, row) for question, each in found for row in range(len(question))]
    for question, each, row in rows[:SHOWN]:
        last = each.leeways[-1]
        stream = question.inputs.queries_and_keys(last.site.kind)
        query, key = (question.inputs.tokens[row][one.start : one.stop] for one in stream)
        asked = [number for number in last.rows.tolist() if query[number] != FILLER]
        kept = [number for number, text in enumerate(key) if text != FILLER]
        both = {"the model's": last.own[None], "the farthest": each.shares[-1][:1]}
        yield plots.maps(
            f"Two attentions, one output: text {question.order[row]}",
            [query[number] for number in asked],
            [key[number] for number in kept],
            {
                name: last.rebuilt(shares)[row][:, asked][..., kept].float().mean(dim=0)
                for name, shares in both.items()
            },
            reading=f"Both give {question.targets[row].name!r} with the same probability, within "
            f"{float(each.change[0, row]):.3f}.",
        )
