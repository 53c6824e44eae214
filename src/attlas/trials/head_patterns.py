"""Head patterns: which heads attend to a neighbour, a separator, everything, or by induction."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from attlas.data.files.conllu import read_conllu
from attlas.errors import UnsupportedModelError, UsageError
from attlas.models.asking.open_model import OpenModel
from attlas.models.asking.question import Question
from attlas.results import Site
from attlas.results.support import plots
from attlas.trials.reading.pattern_scores import (
    BROAD,
    PATTERNS,
    PatternScores,
    mean_over_texts,
    score_heads,
    whole_sites,
)
from attlas.trials.reading.relations import FollowedRelation, follow_relations
from attlas.trials.support.scope import Scope
from attlas.trials.support.trial import TrialOutcome, trial
from attlas.views.units import heads_by_key, layer_names

NOTES = (
    "Each figure is that of the head with the largest mean over these texts.",
    "Rows that the prediction does not depend on are left out.",
)
EVERYWHERE = "all layers, all heads, all rows with a path to the readout"
Leaders = Mapping[str, int | None]  # for each pattern, the head that follows it most


@trial(
    cost="cheap",
    paper="arXiv:1906.04341, arXiv:2209.11895",
    reading="What does each head attend to: a neighbour, the token itself, a separator, "
    "everything, or the token that followed an earlier copy of this one?",
    does_not_show="That a head matters: where it attends says nothing about what is done with it.",
    needs=("attention",),
)
def head_patterns(
    questions: Sequence[Question],
    scope: Scope = Scope(),  # noqa: B008
    *,
    seed: int = 0,
    least: int | float = 0.5,
    conllu: str | None = None,
) -> TrialOutcome:
    """Score every head by where it attends, and name those that do little else.

    All layers are read, unless the scope names one. A head follows a pattern if it gives at least
    `least` of its attention to it. With a CoNLL-U file, heads are also compared with syntactic
    relations: which head follows which relation better than a fixed distance between words does.
    """
    if not 0 < least <= 1:
        raise UsageError(f"least is a share of the attention, above 0 and at most 1, not {least}")
    subject = questions[0].subject
    sites = _sites(subject, scope)
    shown_by_key = heads_by_key((site.name, site.heads) for site in sites)
    names, shown = list(shown_by_key), list(shown_by_key.values())
    scores = score_heads(questions, sites, seed)
    leaders = {name: scores.leader(name) for name in PATTERNS}
    followed: list[FollowedRelation] = []
    if conllu is not None:
        live = whole_sites(questions[0], sites)
        followed = follow_relations(subject, live, read_conllu(conllu), seed)
    texts = tuple(number for question in questions for number in question.order)
    unknown = np.full(len(texts), np.nan)
    return TrialOutcome(
        figures={
            name: unknown if head is None else scores.scores[name][:, head]
            for name, head in leaders.items()
        },
        texts=texts,
        sentence=" ".join(_sentences(scores, leaders, shown, float(least), followed)),
        ceilings=dict.fromkeys(PATTERNS, 1.0),
        plots=tuple(_plots(scores, leaders, shown, sites, followed)),
        notes=NOTES if scope.kind == "layer" else (f"Which attention: {EVERYWHERE}.", *NOTES),
        details=_details(scores, leaders, names, followed),
    )


def _sites(subject: OpenModel, scope: Scope) -> tuple[Site, ...]:
    """The self-attention over text that the scope is about."""
    if subject.reads_images or subject.reads_pairs:
        raise UnsupportedModelError(
            f"head_patterns needs tokens in one line, and {subject.name} reads pictures"
        )
    asked = scope.sites(subject) if scope.kind == "layer" else subject.sites
    sites = tuple(site for site in asked if site.kind in ("encoder", "decoder"))
    if not sites:
        named = ", ".join(site.name for site in asked)
        raise UsageError(f"head_patterns needs self-attention, and the scope is about {named}")
    return sites


def _sentences(
    scores: PatternScores,
    leaders: Leaders,
    names: Sequence[str],
    least: float,
    followed: Sequence[FollowedRelation],
) -> Iterator[str]:
    told = []
    for pattern, head in leaders.items():
        means = mean_over_texts(scores.scores[pattern])
        many = int((means >= least).sum())
        if head is not None and many:
            told.append(f"{pattern} {many} (most: {names[head]}, {means[head]:.2f})")
    what = f"with at least {least:g} of the attention"
    if told:
        yield f"How many of {len(names)} heads follow a pattern {what}: {'; '.join(told)}."
    else:
        yield f"None of {len(names)} heads follows a pattern {what}."
    if followed:
        beyond = [f"{each.relation} ({each.shown_head})" for each in followed if each.beyond]
        yield (
            f"Of {len(followed)} syntactic relations, heads follow {len(beyond)} better than a "
            f"fixed distance does{': ' if beyond else ''}{', '.join(beyond)}."
        )


def _plots(
    scores: PatternScores,
    leaders: Leaders,
    names: Sequence[str],
    sites: Sequence[Site],
    followed: Sequence[FollowedRelation],
) -> Iterator[plots.Plot]:
    rows = []
    for pattern, head in leaders.items():
        if head is not None:
            found, chance = (
                float(mean_over_texts(table[pattern])[head])
                for table in (scores.scores, scores.chance)
            )
            rows.append([pattern, PATTERNS[pattern], names[head], found, chance])
    yield plots.table(
        "The head that follows each pattern most",
        ("pattern", "attends to", "head", "score", "chance"),
        rows,
        reading="The score is a share of the head's attention, a mean over rows and texts; chance "
        "is the score of a head that attends to all tokens alike.",
    )
    widest = max(site.heads for site in sites)
    for pattern, head in leaders.items():
        if head is None:
            continue
        values = np.full((len(sites), widest), np.nan)
        starts = np.cumsum([0, *(site.heads for site in sites)])
        means = mean_over_texts(scores.scores[pattern])
        for row, site in enumerate(sites):
            values[row, : site.heads] = means[starts[row] : starts[row + 1]]
        yield plots.matrix(
            f"Heads: {pattern}",
            list(layer_names(site.name for site in sites).values()),
            [str(number) for number in range(widest)],
            values,
            x_label="head",
            y_label="layer",
            reading=_reading(pattern),
        )
    if followed:
        yield _relation_table(followed)


def _reading(pattern: str) -> str:
    if pattern == BROAD:
        return "Over how many of the visible tokens a head spreads: 0 is one token, 1 is all."
    return f"How much of its attention each head gives to {PATTERNS[pattern]}."


def _relation_table(followed: Sequence[FollowedRelation]) -> plots.Plot:
    return plots.table(
        "Heads and syntactic relations",
        (
            "relation",
            "words",
            "head",
            "read",
            "right",
            "distance",
            "right by it",
            "gain",
            "from",
            "to",
        ),
        [
            [
                each.relation,
                each.words,
                each.shown_head,
                each.direction,
                each.accuracy,
                each.offset,
                each.offset_accuracy,
                each.gain,
                each.low,
                each.high,
            ]
            for each in sorted(followed, key=lambda one: -one.gain)
        ],
        reading="Head, direction and distance were chosen on half of the sentences; the figures "
        "are of the other half. The intervals of the gain hold for all relations at once.",
    )


def _details(
    scores: PatternScores,
    leaders: Leaders,
    names: Sequence[str],
    followed: Sequence[FollowedRelation],
) -> dict[str, Any]:
    def by_head(pattern: str) -> dict[str, float | None]:
        means = mean_over_texts(scores.scores[pattern])
        shown = [float(mean) if np.isfinite(mean) else None for mean in means]
        return dict(zip(names, shown, strict=True))

    return {
        "scores": {pattern: by_head(pattern) for pattern in PATTERNS},
        "leaders": {name: None if head is None else names[head] for name, head in leaders.items()},
        "relations": [each.to_dict() for each in followed],
    }
