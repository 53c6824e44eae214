"""Identifiability: does the output of an attention determine its weights?

Brunner et al., "On Identifiability in Transformers", ICLR 2020; Sun and Marasović, "Effective
Attention Sheds Light On Interpretability", Findings of ACL 2021; Bhardwaj et al., "More
Identifiable yet Equally Performant Transformers for Text Classification", ACL 2021.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import torch
from torch import Tensor

from attlas.errors import UnsupportedModelError, UsageError
from attlas.mathematics.identifying import condition, conicity, longest_identifiable
from attlas.methods.effective_attention import head_values
from attlas.models.asking.question import Question
from attlas.models.asking.reading import fold_attention
from attlas.models.intervening.keys import read_keys
from attlas.models.states.block_states import block_states
from attlas.models.tap.call import Call
from attlas.results import Site
from attlas.results.support import plots
from attlas.shapes import TextValues
from attlas.trials.reading.row_freedom import (
    CORRELATION,
    DETERMINED,
    DETERMINED_BY_QUERY,
    KEPT,
    RowFreedom,
)
from attlas.trials.searching.other_attention import OtherAttention, find_other_attention
from attlas.trials.support.scope import Scope
from attlas.trials.support.token_kinds import TOKEN_KINDS
from attlas.trials.support.trial import TrialOutcome, trial


@trial(
    cost="cheap",
    paper="Brunner et al. 2020, arXiv:1908.04211; Sun and Marasović 2021, arXiv:2105.08855; "
    "Bhardwaj et al. 2021, arXiv:2106.01269",
    reading="Could other attention weights have given exactly the same output?",
    does_not_show="That these weights are unfaithful: whether others would do is mostly a matter "
    "of how long a text is and how wide a head.",
    needs=("attention", "values"),
)
def identifiability(
    questions: Sequence[Question],
    scope: Scope = Scope(),  # noqa: B008
    *,
    seed: int = 0,
    searches: int = 3,
) -> TrialOutcome:
    """Find in how many dimensions the weights of a row are free while its output stays the same.

    Figures are means over the heads, rows and layers of the scope. For the `searches` texts with
    the most freedom, another valid attention with the same output is searched, in directions drawn
    by `seed`; the farthest is shown.
    """
    if searches < 1:
        raise UsageError(f"searches of identifiability must be at least 1, not {searches}")
    if scope.kind == "token":
        raise UsageError(
            "identifiability is about rows of weights, not about the scope token; "
            "allowed: readout, layer, all"
        )
    found = _BatchFigures()
    for question in questions:
        found.add(question, scope)
    texts = tuple(number for question in questions for number in question.order)
    figures = {name: np.concatenate(values) for name, values in found.figures.items()}
    roomiest = np.lexsort((-figures["keys"], -figures[KEPT]))[:searches]
    others = [find_other_attention(*_row_of(questions, int(row)), scope, seed) for row in roomiest]
    other = max(others, key=lambda each: each.distances.max())
    return TrialOutcome(
        figures,
        texts,
        _sentence(figures, found.longest, other, len(others)),
        ceilings={DETERMINED: 1.0, DETERMINED_BY_QUERY: 1.0, CORRELATION: 1.0},
        plots=(_by_length(figures), _by_kind(figures), *other.plots()),
        notes=(f"scope: {scope}", *found.notes()),
        details={"longest identifiable": found.longest, "other attention": other.to_dict()},
    )


@dataclass
class _BatchFigures:
    """Figures, collected batch by batch."""

    figures: dict[str, list[TextValues]] = field(default_factory=dict)
    longest: dict[str, int] = field(default_factory=dict)  # by site

    def add(self, question: Question, scope: Scope) -> None:
        opened = {each.site.name: each for each in scope.open_sites(question)}
        sites = [each.site for each in opened.values()]
        keys, states = _keys_and_states(question, sites)
        by_site = []

        def look(call: Call) -> None:
            rows = RowFreedom(question, call, opened[call.site.name])
            width = head_values(call).shape[-1]
            self.longest[call.site.name] = longest_identifiable(width)
            lengths = rows.count.masked_fill(~rows.counted, 0).amax(dim=-1)
            by_site.append(
                {
                    "too long to determine": (lengths > longest_identifiable(width)).double(),
                    **rows.figures(keys.get(call.site.name)),
                    **_collinearity(head_values(call), states.get(call.site.name)),
                }
            )

        fold_attention(question, look, sites)
        for name in by_site[0]:
            mean = torch.stack([each[name] for each in by_site]).nanmean(dim=0)
            self.figures.setdefault(name, []).append(mean.cpu().numpy())

    def notes(self) -> tuple[str, ...]:
        if not all(np.isnan(each).all() for each in self.figures[DETERMINED_BY_QUERY]):
            return ()
        return (
            "what other queries would give is not known here: the model computes its attention "
            "itself, or it is not the softmax of plain scores",
        )


def _keys_and_states(
    question: Question, sites: Sequence[Site]
) -> tuple[Mapping[str, Tensor], Mapping[str, Tensor]]:
    """By site: the keys, and the hidden states that enter the layer, where they can be read."""
    subject = question.subject
    kinds = {site.kind for site in sites if not site.kind.startswith("cross")}
    places = [place for place in subject.places if place[0].kind in kinds]
    try:
        with block_states(subject, places) as handed:
            keys = read_keys(question, sites)
    except UnsupportedModelError:
        return read_keys(question, sites), {}
    if len(handed) != len(places):
        return keys, {}
    pairs = zip(places, handed, strict=True)
    return keys, {site.name: state.detach() for (site, _), state in pairs}


def _collinearity(values: Tensor, states: Tensor | None) -> dict[str, Tensor]:
    """How close to one line the values of each head are, and the states they come from."""
    unknown = torch.full_like(values[:, 0, 0, 0], torch.nan, dtype=torch.float64)
    return {
        "condition of values, log10": condition(values).log10().mean(dim=1),
        "conicity of values": conicity(values).mean(dim=1),
        "condition of states, log10": unknown if states is None else condition(states).log10(),
        "conicity of states": unknown if states is None else conicity(states),
    }


def _row_of(questions: Sequence[Question], number: int) -> tuple[Question, int]:
    """The question that holds a row, counted over all questions, and its number there."""
    for question in questions:
        if number < len(question):
            return question, number
        number -= len(question)
    raise IndexError(number)


def _sentence(
    figures: Mapping[str, TextValues],
    longest: Mapping[str, int],
    other: OtherAttention,
    searched: int,
) -> str:
    least, most = min(longest.values()), max(longest.values())
    beyond = f"{least}" if least == most else f"{least} to {most}"
    long = int((figures["too long to determine"] > 0).sum())
    said = (
        f"Beyond {beyond} keys, the output of a row does not determine its weights, and {long} of "
        f"{len(figures[KEPT])} texts are longer. The weights are free in "
        f"{figures[KEPT].mean():.1f} dimensions on average"
    )
    if not np.isnan(figures[DETERMINED_BY_QUERY]).all():
        share = np.nanmean(figures[DETERMINED_BY_QUERY])
        said += (
            f"; among the weights that a query can produce, {share:.0%} of the rows are determined"
        )
    if not np.isnan(figures[CORRELATION]).all():
        said += f"; raw and effective attention correlate at {np.nanmean(figures[CORRELATION]):.2f}"
    return f"{said}. {other.sentence(searched)}"


def _by_length(figures: Mapping[str, TextValues]) -> plots.Plot:
    return plots.scatter(
        "Raw against effective attention, by length",
        {"texts": (figures["keys"], figures[CORRELATION])},
        x_label="keys that a row sees",
        y_label="correlation of raw and effective weights",
        reading="At 1 the output depends on all of the weights; the lower, the more of them has no "
        "effect.",
    )


def _by_kind(figures: Mapping[str, TextValues]) -> plots.Plot:
    sides = ("raw", "effective")
    return plots.matrix(
        "Where the weight lies",
        sides,
        TOKEN_KINDS,
        [[figures[f"{side} weight on {kind}"].mean() for kind in TOKEN_KINDS] for side in sides],
        x_label="kind of token",
        y_label="share of the weight",
        reading="Weight that raw attention has and effective attention lacks has no effect on the "
        "output.",
    )
