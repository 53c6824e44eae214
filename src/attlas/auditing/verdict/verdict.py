"""The verdict on the attention weights, by the rules in `rules.py`."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import ceil, isfinite

import numpy as np

from attlas.auditing.verdict import advice, wording
from attlas.auditing.verdict.crossing import (
    CONTROL,
    REFERENCE,
    WEIGHTS,
    Crossed,
    Roles,
    cross,
    pool,
)
from attlas.auditing.verdict.rules import (
    ENOUGH_SPLITS,
    HOPELESS,
    RemovalTest,
    Rules,
    WeightsTest,
    decide,
    plain_weights_fail,
    times_for_plain_weights,
    times_outside,
)
from attlas.mathematics.intervals import Estimate, allow_unseen, simultaneous_bounds
from attlas.mathematics.standing import (
    Evidence,
    Locations,
    MethodComparison,
    contrasts,
    effective_texts,
    mean_rooms,
    select_texts,
    standings,
    text_count,
    texts_with_room,
    typical_rooms,
)
from attlas.results.support.report_sections import Figure
from attlas.results.support.verdict import (
    Bounds,
    Direction,
    GridWord,
    GroupStanding,
    OtherReading,
    Verdict,
)
from attlas.shapes import TextGroups, TextValues

A_POINT = 0.01  # of s: a smaller gain makes no better reading
Shares = Mapping[str, TextValues]  # by method or "": of all tokens


@dataclass(frozen=True, eq=False)
class Tested:
    """Everything that a verdict rests on, for all texts.

    `moved` is how far the answer moves if the attention is shuffled; None if that is not possible.
    `directions` holds, by removal, the shares that speak for the prediction, and under "pull" how
    much there is to share. `kinds` names groups of texts, each with the numbers of its texts.
    """

    evidence: Evidence
    roles: Roles
    families: Mapping[str, str] = field(default_factory=dict)  # of methods that use more
    moved: TextValues | None = None
    directions: Mapping[str, Shares] = field(default_factory=dict)
    kinds: Mapping[str, np.ndarray] = field(default_factory=dict)
    groups: TextGroups | None = None
    seed: int = 0
    model: str = ""  # its name, for commands


def verdict(tested: Tested, rules: Rules | None = None) -> Verdict:
    """Judge the attention weights by what they reach on each text."""
    rules = rules or Rules()
    splits = cross(tested.evidence, tested.roles, tested.groups, tested.seed)
    crossed = pool(splits)
    used = attention_use(tested)
    tests = _test(crossed.evidence, tested, rules)
    by_split = [_test(each.evidence, tested, rules) for each in splits]
    word, same = _word(tests, by_split, used, rules)
    readings = _readings(tested, crossed)
    method = crossed.name_of(WEIGHTS)
    assert method is not None
    told = WeightsTest(
        word, method, tests, used,
        {each: crossed.name_of(CONTROL, each) for each in tests},
        {each: crossed.name_of(REFERENCE, each) for each in tests},
        _texts_needed(tests, used, rules, text_count(tested.evidence)) if word == TOO_FEW else None,
        text_count(tested.evidence), same, rules, tested.model,
        {each.method: each.gain.value or 0.0 for each in readings if each.better},
    )  # fmt: skip
    directions = tuple(_directions(tested, method))
    return Verdict(
        word,
        wording.sentence(told),
        wording.which_way(method, directions),
        advice.next_step(told),
        method,
        {removal: _bounds(told, removal) for removal in tests},
        told.texts,
        None if used is None else as_figure(used),
        same,
        told.needed,
        directions,
        tuple(_by_group(crossed.evidence, tested, rules)),
        tuple(
            GridWord(each.floor, each.margin, _word(tests, by_split, used, each)[0])
            for each in rules.grid()
        ),
        readings,
        wording.notes(told),
        advice.in_everyday_words(told),
    )


TOO_FEW = "too few texts"


def _word(
    tests: Mapping[str, RemovalTest],
    by_split: Sequence[Mapping[str, RemovalTest]],
    used: Estimate | None,
    rules: Rules,
) -> tuple[str, float]:
    """The word of all splits together, by rule 4, and the share of splits that give theirs."""
    pooled = decide(tests.values(), used, rules)
    words = [decide(each.values(), used, rules) for each in by_split]
    same = words.count(pooled) / len(words)
    return pooled if same >= ENOUGH_SPLITS else TOO_FEW, same


def _test(crossed: Evidence, tested: Tested, rules: Rules) -> dict[str, RemovalTest]:
    """The figures under each removal, with bounds that hold for all of them at once."""
    asked = [
        MethodComparison(WEIGHTS, other, (removal,))
        for removal, own in crossed.items()
        for other in (None, CONTROL, REFERENCE)
        if other is None or other in own.methods
    ]
    seed, groups = tested.seed, tested.groups
    found = dict(zip(asked, standings(crossed, asked, seed, groups), strict=True))
    rooms, shares, typical = (
        each(crossed, seed, groups) for each in (mean_rooms, contrasts, typical_rooms)
    )
    plain = _plain_weights(tested)
    return {
        removal: RemovalTest(
            found[MethodComparison(WEIGHTS, None, (removal,))],
            found.get(MethodComparison(WEIGHTS, CONTROL, (removal,))),
            found.get(MethodComparison(WEIGHTS, REFERENCE, (removal,))),
            rooms[removal],
            texts_with_room(own.best, rules.least_room, groups),
            shares[removal],
            typical[removal],
            effective_texts(own.best, groups),
            plain.get(removal),
        )
        for removal, own in crossed.items()
    }


def _plain_weights(tested: Tested) -> dict[str, Estimate]:
    """s of the weights as they are, by removal, if they could be read."""
    name = tested.roles.weights[0]
    removals = [each for each, own in tested.evidence.items() if name in own.methods]
    asked = [MethodComparison(name, None, (removal,)) for removal in removals]
    found = standings(tested.evidence, asked, tested.seed, tested.groups)
    return dict(zip(removals, found, strict=True))


def attention_use(tested: Tested) -> Estimate | None:
    """How far shuffled attention moves the answer, on the texts that have something to find.

    A text counts as much as its best order finds, under all removals.
    """
    if tested.moved is None:
        return None
    rooms = np.mean([np.nan_to_num(each.best) for each in tested.evidence.values()], axis=0)
    weight = np.maximum(rooms, 0.0) + 1e-9  # if no token matters, all texts count alike
    moved = (tested.moved * weight)[:, None, None]
    (found,) = simultaneous_bounds(moved, weight[:, None, None], tested.seed, tested.groups)
    return allow_unseen(found, weight, tested.groups)


def _directions(tested: Tested, method: str) -> Iterator[Direction]:
    for removal, shares in tested.directions.items():
        pull = shares["pull"]
        columns = np.stack([shares.get(method, shares[""]), shares[""]], axis=1)
        known = np.where(np.isnan(columns), np.nan, pull[:, None])
        found = simultaneous_bounds(
            (columns * known)[..., None], known[..., None], tested.seed, tested.groups
        )
        if not np.isnan(found[0].mean):
            highlighted, every = (
                allow_unseen(each, weights, tested.groups)
                for each, weights in zip(found, known.T, strict=True)
            )
            yield Direction(removal, as_figure(highlighted), as_figure(every))


def _by_group(crossed: Evidence, tested: Tested, rules: Rules) -> Iterator[GroupStanding]:
    for name, texts in tested.kinds.items():
        own = select_texts(crossed, texts)
        groups = None if tested.groups is None else tested.groups[texts]
        for removal, found in own.items():
            asked = [MethodComparison(WEIGHTS, None, (removal,))]
            (s,) = standings(own, asked, tested.seed, groups)
            without = int((np.nan_to_num(found.best) < rules.least_room).sum())
            yield GroupStanding(name, removal, as_figure(s), without, len(texts))


def _readings(tested: Tested, crossed: Crossed) -> tuple[OtherReading, ...]:
    """The methods of V and P over all removals, the highest first, with simultaneous bounds.

    A reading is better if it is surely above the weights, by at least a point.
    """
    removals = tuple(tested.evidence)
    evidence = {
        removal: Locations(
            own.best,
            own.importance,
            {**own.methods, WEIGHTS: crossed.evidence[removal].methods[WEIGHTS]},
        )
        for removal, own in tested.evidence.items()
    }
    names = [
        name
        for name, family in tested.families.items()
        if family in "VP" and all(name in each.methods for each in evidence.values())
    ]
    asked = [MethodComparison(name, other, removals) for other in (None, WEIGHTS) for name in names]
    answers = standings(evidence, asked, tested.seed, tested.groups)
    readings = [
        OtherReading(
            name,
            tested.families[name],
            as_figure(s),
            as_figure(gain),
            gain.low > 0 and gain.mean >= A_POINT,
        )
        for name, s, gain in zip(names, answers, answers[len(names) :], strict=False)
    ]
    return tuple(sorted(readings, key=lambda each: -(each.s.value or 0.0)))


def _texts_needed(
    tests: Mapping[str, RemovalTest], used: Estimate | None, rules: Rules, given: int
) -> int | None:
    """About how many texts would do; None if no number would."""
    times: list[float] = [
        each.times_needed(rules) for each in tests.values() if each.finding(rules) == "open"
    ]
    if used is not None and used.low <= rules.least_use <= used.high:
        times.append(times_outside(used, rules.least_use))
    if not times and plain_weights_fail(tests.values(), rules) is None:
        times.append(times_for_plain_weights(tests.values(), rules))
    most = max(times, default=2.0)
    return ceil(given * max(most, 1.0)) if isfinite(most) and most <= HOPELESS else None


def _bounds(told: WeightsTest, removal: str) -> Bounds:
    test = told.tested[removal]
    control, reference = test.less_control, test.less_reference
    return Bounds(
        as_figure(test.s),
        None if control is None else as_figure(control),
        None if reference is None else as_figure(reference),
        told.controls[removal],
        told.references[removal],
        as_figure(test.room),
        test.effective,
        test.finding(told.rules),
        wording.why(told, removal),
        as_figure(test.carrying),
        as_figure(test.contrast),
    )


def as_figure(estimate: Estimate) -> Figure:
    """An estimate in the form that reports hold."""
    return Figure(estimate.mean, estimate.low, estimate.high, estimate.inputs)
