"""The table of a report, its example texts and its sections on trials."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from attlas.auditing.collected import Collected, TrialRun
from attlas.auditing.plan import AuditPlan
from attlas.auditing.verdict.verdict import as_figure
from attlas.auditing.work.explained import CONTROLS, case_seed
from attlas.explaining.licensing import HeatMap, licences
from attlas.mathematics.intervals import bootstrap_means
from attlas.mathematics.significance import sign_flip
from attlas.measures import MEASURES, Case, is_circular
from attlas.measures.support.walks import effects_of, walks
from attlas.methods import METHODS
from attlas.models.asking.question import Question
from attlas.removing.erasures import Erasures
from attlas.results.support.licence import Licence
from attlas.results.support.report_sections import (
    Cell,
    Column,
    Figure,
    MethodRow,
    Reading,
    ReportTable,
    Sample,
    TrialSection,
    Truth,
)
from attlas.results.support.words import word_units
from attlas.shapes import TextGroups
from attlas.trials import TRIALS, figures_with_intervals

SIGNIFICANT = 0.05
TOP_SHARE = 0.2  # of the tokens, removed from an example
LONGEST = 40  # tokens of an example


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
    plan: AuditPlan, collected: Collected, weights: str, better: str
) -> tuple[Sample, ...]:
    """A text on which the weights find as much as usual, then the best and the worst."""
    removal = plan.verdict_removals[0]
    found = _share_found(plan, collected, weights, removal)
    if not len(found):
        return ()
    chosen = {
        int(found.index[len(found) // 2]): "A typical text",
        int(found.index[-1]): "The text on which the weights find the most of what matters",
        int(found.index[0]): "The text on which the weights find the least of what matters",
    }
    known = {
        (int(text), str(method)): np.array(values)
        for text, method, values in collected.scores.to_numpy()
        if method in (weights, better)
    }
    return tuple(
        _sample(
            plan,
            number,
            point,
            {name: known[number, name] for name in (weights, better) if (number, name) in known},
        )
        for number, point in chosen.items()
        if (number, weights) in known
    )


def _share_found(plan: AuditPlan, collected: Collected, weights: str, removal: str) -> pd.Series:
    """s of the weights on each short text that has something to find, in ascending order."""
    own = collected.tested().evidence[removal]
    texts = collected.tested_texts
    found = own.methods.get(weights, np.full(len(texts), np.nan))
    table = pd.DataFrame({"found": found, "best": own.best}, index=texts)
    short = [number for number in texts if plan.texts.lengths[number] <= LONGEST]
    able = table.loc[short].query("best >= @plan.settings.rules.least_room").dropna()
    return (able["found"] / able["best"]).sort_values(kind="stable")


def _sample(plan: AuditPlan, number: int, point: str, scores: dict[str, np.ndarray]) -> Sample:
    (question,) = plan.texts.ask([number])
    removed = [Erasures([question], removal) for removal in plan.verdict_removals]
    first, weights = removed[0], next(iter(scores.values()))
    licence = _licence(plan, number, removed, weights)
    gold = plan.texts.gold
    return Sample(
        point,
        tuple(_pieces(question, first.content(0))),
        question.targets[0].name,
        float(first.whole(0).probability[0]),
        first.how,
        tuple(_reading(question, first, name, own, number) for name, own in scores.items()),
        truth=_truth(plan, number, first, licence.removals[0].share),
        licence=licence,
        words=_words(question, first.content(0)),
        true_label=None if gold is None else question.subject.labels[gold[number]],
    )


def _words(question: Question, content: Sequence[int]) -> tuple[tuple[int, ...], ...]:
    """The places among the content tokens of the tokens of each word; none if words interleave."""
    places = {position: place for place, position in enumerate(content)}
    units = word_units(question.inputs.tokens[0])
    held = [tuple(places[each] for each in unit.positions if each in places) for unit in units]
    in_order = [place for word in held for place in word] == list(range(len(content)))
    return tuple(word for word in held if word) if in_order else ()


def _licence(
    plan: AuditPlan, number: int, removed: Sequence[Erasures], weights: np.ndarray
) -> Licence:
    """The licence of the weights, by the same random orders that the verdict rests on."""
    seed, content = case_seed(plan.settings.seed, number), removed[0].content(0)
    heat_map = HeatMap(0, weights.astype(np.float64), False, seed)
    (licence,) = licences(removed, [heat_map], pairs=plan.settings.pairs)
    rows = [
        replace(row, enough=_counted(row.enough, content), needed=_counted(row.needed, content))
        for row in licence.removals
    ]
    return replace(licence, removals=tuple(rows))


def _counted(positions: tuple[int, ...] | None, content: list[int]) -> tuple[int, ...] | None:
    """Positions in the input, counted among the content tokens."""
    return None if positions is None else tuple(content.index(each) for each in positions)


def _reading(
    question: Question, erasures: Erasures, name: str, scores: np.ndarray, number: int
) -> Reading:
    """The scores of a method, and the answer without the tokens that they rank first."""
    count = max(1, round(TOP_SHARE * len(scores)))
    first = Case(np.abs(scores.astype(np.float64)), number).order()[:count]
    hidden = np.zeros((1, len(scores)), dtype=bool)
    hidden[0, first] = True
    after = erasures.of(0, hidden)
    return Reading(
        name,
        tuple(float(value) for value in scores),
        METHODS[name].takes_sides,
        tuple(sorted(int(place) for place in first)),
        _label(question, bool(after.chosen[0])),
        float(after.probability[0]),
    )


def _truth(plan: AuditPlan, number: int, erasures: Erasures, s: float | None) -> Truth:
    settings, count = plan.settings, len(erasures.content(0))
    case = Case(np.zeros(count), case_seed(settings.seed, number), pairs=settings.pairs)
    effects = effects_of(case, erasures.of(0, walks(case)))
    return Truth(tuple(effects.importance.tolist()), tuple(effects.pull.tolist()), s)


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
