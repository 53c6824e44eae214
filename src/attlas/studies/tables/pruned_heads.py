"""What switching heads off and adding triggers does on each task: record, claims, tables, plots."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import combinations
from statistics import fmean
from typing import Any

from attlas.results import Claim, ComparedTable, HeadImportance, PruneCurve, Triggers
from attlas.results.support import plots
from attlas.results.support.report_sections import Figure
from attlas.studies.support.findings import (
    compared,
    decided,
    in_share,
    listed,
    over_seeds,
    share_of,
    untested,
)

PAIRS = ("rte", "mrpc", "mnli")  # the tasks about two texts, which are alike
RANKED_BY = "attattr"  # the ranking that tasks are compared by
RIVALS = ("taylor", "accuracy_difference")
GAPS = (RANKED_BY, "attention")  # the orders of heads whose first and last are compared
OVER = "models"
TRIGGERS_SHOWN = 3
SEPARATES = 0.05  # of accuracy: by so much, two orders of heads differ
PAPER = "Hao et al. 2021"


@dataclass(frozen=True, eq=False)
class TaskResult:
    """What was found on one task."""

    task: str
    pruned: PruneCurve
    effectiveness: PruneCurve
    triggers: Triggers

    @property
    def importance(self) -> HeadImportance:
        """The importance of heads by attribution."""
        return next(each for each in self.pruned.importances if each.by == RANKED_BY)

    def gap(self, by: str) -> float:
        """How much more accuracy the highest head of each layer costs than the lowest."""
        first, last = (
            self.effectiveness[f"{by}, {order} first"].points[1].accuracy.mean
            for order in ("highest", "lowest")
        )
        return last - first

    def area(self, by: str) -> float:
        """The mean of a pruning curve."""
        return next(each.area.mean for each in self.pruned.curves if each.name == by)

    def ahead_of(self, rival: str) -> float:
        """How much higher the curve of attribution is than that of another ranking."""
        return self.area(RANKED_BY) - self.area(rival)

    def strongest_trigger(self) -> Any:
        """The trigger that costs a class most beyond random words; None if there is none."""
        own = [each.strongest for each in self.triggers.triggers]
        return max(own, key=lambda each: each.drop, default=None)

    def to_dict(self) -> dict[str, Any]:
        """Everything, as JSON."""
        parts = {"pruned": self.pruned, "effectiveness": self.effectiveness}
        made = {name: each.to_dict() for name, each in parts.items()}
        return {"task": self.task, **made, "triggers": self.triggers.to_dict()}

    @classmethod
    def from_dict(cls, record: Mapping[str, Any]) -> "TaskResult":
        """Read what `to_dict` returned."""
        pruned, effect = (
            PruneCurve.from_dict(record[name]) for name in ("pruned", "effectiveness")
        )
        return cls(record["task"], pruned, effect, Triggers.from_dict(record["triggers"]))


ByTask = dict[str, list[TaskResult]]  # for each model of a task, what was found


def claims_on(found: ByTask) -> list[Claim]:
    """The claims of the paper, decided on these tasks; on each, over its models."""
    gaps = {by: over_tasks(found, lambda each, by=by: each.gap(by)) for by in GAPS}  # type: ignore[misc]
    ahead = {
        f"{task}, {rival}": over_seeds([each.ahead_of(rival) for each in own])
        for task, own in found.items()
        for rival in RIVALS
    }
    half = over_tasks(found, lambda each: each.gap(RANKED_BY) / 2 - abs(each.gap("attention")))
    return [
        decided(
            "Heads with high attribution matter: without the first of each layer accuracy falls, "
            "without the last it hardly does",
            f"{PAPER}, effectiveness analysis (figure)",
            in_share(
                f"in every task the first head costs {SEPARATES:g} more accuracy than the last, "
                "with the whole interval over models"
            ),
            share_of([_low(each) >= SEPARATES for each in gaps[RANKED_BY].values()]),
            found=_told(gaps[RANKED_BY]),
            over="tasks",
        ),
        decided(
            "Attention scores do not separate the heads",
            f"{PAPER}, effectiveness analysis (figure)",
            in_share(
                "in every task attention separates them less than half as well as attribution, "
                "with the whole interval over models"
            ),
            share_of([_low(each) > 0 for each in half.values()]),
            found=_told(gaps["attention"]),
            over="tasks",
        ),
        decided(
            "Ranking by attribution prunes at least as well as Taylor expansion and accuracy "
            "difference",
            f"{PAPER}, attention head pruning (figure)",
            in_share(
                "in every task the mean of its curve is at least that of either, with the whole "
                "interval over models"
            ),
            share_of([_low(each) >= 0 for each in ahead.values()]),
            found=f"Ahead by: {_told(ahead)}.",
            over="tasks and rivals",
        ),
        _similar(found),
        _misled(found),
    ]


def over_tasks(found: ByTask, value: Callable[[TaskResult], float]) -> dict[str, Figure]:
    """A figure of each task, over its models."""
    return {task: over_seeds([value(each) for each in own]) for task, own in found.items()}


def _low(figure: Figure) -> float | int:
    """The lower end of an interval, or the figure itself where there is none."""
    known = figure.value if figure.low is None else figure.low
    return 0.0 if known is None else known


def _told(figures: Mapping[str, Figure]) -> str:
    return listed({name: each.value or 0.0 for name, each in figures.items()})


def _similar(found: ByTask) -> Claim:
    said = "Important heads are similar for similar tasks"
    source = f"{PAPER}, attention head pruning (figure)"
    ranks = correlations(found)
    alike = {pair: each for pair, each in ranks.items() if set(pair) <= set(PAIRS)}
    apart = {pair: each for pair, each in ranks.items() if "sst2" in pair}
    if not alike or not apart:
        return untested(said, source, "it takes sst2 and two of rte, mrpc and mnli")
    higher = [
        _low(over_seeds([a - b for a, b in zip(one, other, strict=True)])) > 0
        for one in alike.values()
        for other in apart.values()
    ]
    return decided(
        said,
        source,
        in_share(
            "each two tasks of pairs have a higher rank correlation than any has with sst2, with "
            "the whole interval over models"
        ),
        share_of(higher),
        found=listed({f"{one} and {other}": fmean(each) for (one, other), each in ranks.items()}),
        over="pairs of tasks",
    )


def _misled(found: ByTask) -> Claim:
    said = "A few words taken from the largest attributions mislead the model in other texts"
    tried = [[each.strongest_trigger() for each in own] for own in found.values()]
    known = [[each for each in own if each is not None] for own in tried]
    drops = {task: own for task, own in zip(found, known, strict=True) if own}
    return decided(
        said,
        f"{PAPER}, adversarial triggers",
        in_share(
            "in every task and model a trigger costs a class more than random words, interval over "
            "texts above 0"
        ),
        share_of([each.low > 0 for own in drops.values() for each in own]),
        found=listed({task: fmean(each.drop for each in own) for task, own in drops.items()}),
        over="tasks and models",
    )


def correlations(found: ByTask) -> dict[tuple[str, str], list[float]]:
    """The rank correlation of the importances of two tasks, seed by seed, for the same sites."""
    return {
        (one, other): [
            a.importance.correlation(b.importance).spearman
            for a, b in zip(found[one], found[other], strict=False)
        ]
        for one, other in combinations(found, 2)
        if found[one][0].importance.sites == found[other][0].importance.sites
    }


def _accuracies(found: ByTask) -> ComparedTable:
    ours = over_tasks(found, lambda each: each.pruned.curves[0].points[0].accuracy.mean)
    return compared("Accuracy with all heads", "On the texts heads are tried on.", ours, {}, OVER)


def _areas(found: ByTask) -> ComparedTable:
    ours = {
        f"{task}: {line.name}": over_seeds([each.area(line.name) for each in own])
        for task, own in found.items()
        for line in own[0].pruned.curves
    }
    reading = "The mean accuracy over all shares of heads switched off, the least important first."
    return compared("Pruning: the mean of each curve", reading, ours, {}, OVER)


def _gaps(found: ByTask) -> ComparedTable:
    ours = {
        f"{task}: {by}": over_seeds([each.gap(by) for each in own])
        for task, own in found.items()
        for by in GAPS
    }
    reading = (
        "How much more accuracy is lost without the highest head of each layer than without the "
        "lowest."
    )
    return compared("Effectiveness: the gap", reading, ours, {}, OVER)


def _alike_table(found: ByTask) -> tuple[ComparedTable, ...]:
    ranks = correlations(found)
    ours = {f"{one} and {other}": over_seeds(each) for (one, other), each in ranks.items()}
    reading = "Rank correlation of the importance of heads, by attribution."
    made = compared("Important heads of two tasks", reading, ours, {}, OVER)
    return (made,) if ours else ()


def _task_plots(each: TaskResult) -> list[plots.Plot]:
    made = []
    for title, drawn, along in (
        ("accuracy as the least important heads go", each.pruned, "share of heads switched off"),
        ("accuracy by each text's own ranking", each.effectiveness, "heads of each layer off"),
    ):
        lines = {line.name: [point.accuracy.mean for point in line.points] for line in drawn.curves}
        places = [point.place for point in drawn.curves[0].points]
        reading = "A curve that stays high switches off heads that do not matter."
        axes: dict[str, Any] = {"x_label": along, "y_label": "accuracy", "reading": reading}
        made.append(plots.curve(f"{each.task}: {title}", places, lines, **axes))
    rows = [
        [one.text, most.label, most.before, most.control, most.after, most.drop]
        for one in each.triggers.triggers[:TRIGGERS_SHOWN]
        for most in [one.strongest]
    ]
    head = ["trigger", "class", "before", "random words", "with it", "drop beyond random"]
    reading = "Accuracy of the class that a trigger harms most."
    return [*made, plots.table(f"{each.task}: triggers", head, rows, reading=reading)]


def _alike(found: ByTask) -> tuple[plots.Plot, ...]:
    ranks = {
        f"{one} and {other}": fmean(each) for (one, other), each in correlations(found).items()
    }
    reading = "A longer bar: two tasks whose important heads are more alike."
    drawn = plots.bars("Important heads", ranks, x_label="rank correlation", reading=reading)
    return (drawn,) if ranks else ()


def task_tables(found: ByTask) -> tuple[ComparedTable, ...]:
    """Accuracy with all heads, pruning, effectiveness, and how alike the tasks are."""
    return (_accuracies(found), _areas(found), _gaps(found), *_alike_table(found))


def task_plots(found: ByTask) -> tuple[plots.Plot, ...]:
    """The curves and triggers of the first model of each task, and how alike the tasks are."""
    first = [each[0] for each in found.values()]
    return tuple(plot for each in first for plot in _task_plots(each)) + _alike(found)
