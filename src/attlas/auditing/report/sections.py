"""The table of a report, its example texts and its sections on trials."""

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from attlas.auditing.collected import Collected, TrialRun
from attlas.auditing.plan import AuditPlan
from attlas.auditing.texts import AuditTexts
from attlas.auditing.verdict.verdict import as_figure
from attlas.auditing.work.explained import CONTROLS
from attlas.mathematics.intervals import bootstrap_means
from attlas.mathematics.significance import sign_flip
from attlas.measures import MEASURES, Case, is_circular
from attlas.methods import METHODS
from attlas.models.asking.question import Question
from attlas.removing.erasures import Erasures
from attlas.removing.removal import removable
from attlas.results.support.report_sections import (
    Cell,
    Column,
    Figure,
    MethodRow,
    Reading,
    ReportTable,
    Sample,
    TrialSection,
)
from attlas.shapes import TextGroups
from attlas.trials import TRIALS, figures_with_intervals

SIGNIFICANT = 0.05
EXAMPLES = 3
TOP_SHARE = 0.2  # of the tokens, removed from an example
LONGEST = 60  # tokens of an example


def make_table(collected: Collected) -> ReportTable:
    """Methods by measures: each figure with its interval, and which one is significantly best."""
    columns = list(_columns(collected))
    known = set(collected.values["method"].unique())
    names = [*collected.methods, *(each for each in CONTROLS if each in known)]
    cells: dict[str, list[Cell]] = {name: [] for name in names}
    for column in columns:
        for name, cell in _cells(collected, column, names).items():
            cells[name].append(cell)
    rows = tuple(MethodRow(name, _family(name), tuple(own)) for name, own in cells.items())
    return ReportTable(tuple(columns), rows)


def _family(name: str) -> str:
    return "control" if name in CONTROLS else METHODS[name].family


def _columns(collected: Collected) -> Iterator[Column]:
    known = collected.values[["measure", "removal"]].drop_duplicates()
    pairs = {(str(measure), str(removal)) for measure, removal in known.to_numpy()}
    pairs |= {(measure, "") for measure, _ in collected.unmeasured}
    for name in MEASURES.names():
        for removal in ("", *collected.removals):
            if (name, removal) in pairs:
                yield Column(name, removal, MEASURES[name].better, MEASURES[name].kind)


def _cells(collected: Collected, column: Column, names: list[str]) -> dict[str, Cell]:
    asked, shuffled = (
        collected.of_measure(column.measure, column.removal, kind) for kind in ("value", "shuffled")
    )
    values, chance = (each.reindex(columns=names) for each in (asked, shuffled))
    groups = collected.groups_of(values.index.tolist())
    array = values.to_numpy(dtype=np.float64)
    means = bootstrap_means(array, collected.seed, groups)
    sign = 1.0 if column.better == "higher" else -1.0
    differences = sign * (array - chance.to_numpy(dtype=np.float64))
    tested = [place for place, name in enumerate(names) if name not in CONTROLS]
    p = np.full(len(names), np.nan)
    if tested and not np.isnan(differences[:, tested]).all():
        p[tested] = sign_flip(differences[:, tested], collected.seed, groups).adjusted
    circular = [_is_circular(column, name) for name in names]
    allowed = [place for place in tested if not circular[place] and means[place].inputs]
    best = _best(sign * array, allowed, collected.seed, groups)
    missing = {name: _missing(collected, column.measure, name, name in asked) for name in names}
    cells = {}
    for place, name in enumerate(names):
        if circular[place]:
            cells[name] = Cell(Figure(None), note="circular: it is computed by this removal")
        elif not means[place].inputs:
            cells[name] = Cell(Figure(None), note=missing[name])
        else:
            own = None if np.isnan(p[place]) else float(p[place])
            cells[name] = Cell(as_figure(means[place]), best == place, own)
    return cells


def _is_circular(column: Column, name: str) -> bool:
    return name in METHODS.names() and is_circular(column.measure, name, column.removal)


def _missing(collected: Collected, measure: str, name: str, was_asked: bool) -> str:
    """Why a method has no figure of a measure."""
    refused = collected.unmeasured.get((measure, name)) or collected.refused.get(name)
    return refused or ("undefined on every text" if was_asked else "not asked")


def _best(
    values: NDArray[np.float64], places: Sequence[int], seed: int, groups: TextGroups | None
) -> int | None:
    """The place of the method that is significantly above all others; None if there is none."""
    if len(places) < 2:
        return None
    means = {place: float(np.nanmean(values[:, place])) for place in places}
    first = max(means, key=means.__getitem__)
    others = [place for place in places if place != first]
    beyond = values[:, [first]] - values[:, others]
    known = ~np.isnan(beyond).all(axis=0)
    if not known.all():
        return None
    return first if (sign_flip(beyond, seed, groups).adjusted < SIGNIFICANT).all() else None


def find_examples(
    texts: AuditTexts, collected: Collected, weights: str, better: str, removal: str
) -> tuple[Sample, ...]:
    """The texts on which the two readings differ most, either way, and one in between."""
    table = collected.of_measure("comprehensiveness", removal)
    if not {weights, better} <= set(table):
        return ()
    short = [number for number in table.index if texts.lengths[number] <= LONGEST]
    gap = (table[better] - table[weights]).loc[short].dropna().sort_values()
    if not len(gap):
        return ()
    chosen = [
        (int(gap.index[-1]), f"{better} finds what the prediction rests on; {weights} does not."),
        (int(gap.index[0]), f"{weights} does better than {better} here."),
        (int(gap.index[len(gap) // 2]), "A text between these two."),
    ]
    known = {
        (int(text), str(method)): np.array(values)
        for text, method, values in collected.scores.to_numpy()
        if method in (weights, better)
    }
    kept = list(dict.fromkeys(number for number, _ in chosen))[:EXAMPLES]
    points = dict(reversed(chosen))
    return tuple(
        _sample(
            texts,
            number,
            points[number],
            removal,
            {name: known[number, name] for name in (weights, better) if (number, name) in known},
        )
        for number in kept
    )


def _sample(
    texts: AuditTexts, number: int, point: str, removal: str, scores: dict[str, np.ndarray]
) -> Sample:
    (question,) = texts.ask([number])
    erasures = Erasures([question], removal)
    content = removable(question, 0)
    target = question.targets[0]
    count = max(1, round(TOP_SHARE * len(content)))
    readings = []
    for name, values in scores.items():
        first = Case(values.astype(np.float64), number).order()[:count]
        hidden = np.zeros((1, len(content)), dtype=bool)
        hidden[0, first] = True
        after = erasures.of(0, hidden)
        readings.append(
            Reading(
                name,
                tuple(float(value) for value in values),
                METHODS[name].signed,
                tuple(sorted(int(place) for place in first)),
                _label(question, bool(after.chosen[0])),
                float(after.probability[0]),
            )
        )
    whole = float(erasures.whole(0).probability[0])
    pieces = tuple(_pieces(question, content))
    return Sample(point, pieces, target.name, whole, removal, tuple(readings))


def _label(question: Question, chosen: bool) -> str:
    """What the model predicts without the tokens, as far as is known."""
    name = question.targets[0].name
    if chosen:
        return name
    subject = question.subject
    classifies = subject.task is not None and subject.task.name == "sequence classification"
    others = [each for each in subject.labels if each != name] if classifies else []
    return others[0] if len(others) == 1 else f"not {name}"


def _pieces(question: Question, content: Sequence[int]) -> Iterator[str]:
    """The content tokens with the spaces before them."""
    tokens = question.inputs.tokens[0]
    labels, ends = tokens.labels(), dict.fromkeys(tokens.segments, 0)
    for position in content:
        span, segment = tokens.offsets[position], tokens.segments[position]
        if span is None or segment not in tokens.sources:
            yield f" {labels[position]}"
            continue
        source = tokens.sources[segment]
        new_segment = " " if not ends[segment] and segment != tokens.segments[content[0]] else ""
        yield new_segment + source[max(ends[segment], 0) : span[1]]
        ends[segment] = max(ends[segment], span[1])


def make_trial_section(run: TrialRun, plan: AuditPlan) -> TrialSection:
    """What a trial found, each figure with its interval; or why it could not be run."""
    if run.outcome is None:
        return TrialSection(run.name, str(run.scope), f"It could not be run: {run.reason}.", (), "")
    outcome, groups = run.outcome, plan.texts.groups
    own = None if groups is None else groups[list(outcome.texts)]
    figures = figures_with_intervals(outcome, plan.settings.seed, own)
    sentence = " ".join([outcome.sentence, *outcome.notes])
    limit = TRIALS[run.name].does_not_show
    return TrialSection(run.name, str(run.scope), sentence, figures, limit, tuple(outcome.plots))
