"""The result of scoring: how well methods do on models of known truth, and tables of it."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from attlas.mathematics.intervals import LEVEL, Estimate
from attlas.progress import hush
from attlas.scoring.benches import BENCHES, KINDS

NONE = "–"

READING = (
    "Special tokens are in no ranking. For known truth the scores of signed methods count by their "
    "size; for plausibility the label people gave is explained and signs count. Ties are worth "
    "their mean over every order. Intervals: 95 %, bootstrap over inputs."
)


@dataclass(frozen=True)
class Score:
    """The figures of one method on one model, or the reason why there are none."""

    model: str
    method: str
    figures: Mapping[str, Estimate] | None
    reason: str | None = None


@dataclass(frozen=True)
class Scores:
    """The scores of methods on models; `control` is the method that gives random scores."""

    scores: tuple[Score, ...]
    control: str
    seed: int

    @property
    def models(self) -> list[str]:
        """The models, in order."""
        return list(dict.fromkeys(each.model for each in self.scores))

    @property
    def methods(self) -> list[str]:
        """The methods, in order, the control last."""
        return list(dict.fromkeys(each.method for each in self.scores))

    def of(self, model: str, method: str) -> Score:
        """The score of one method on one model."""
        found = {(each.model, each.method): each for each in self.scores}
        return found[model, method]

    def payload(self) -> dict[str, Any]:
        """Everything, as JSON."""
        return {
            "kind": "method scores",
            "version": 1,
            "reading": READING,
            "level": LEVEL,
            "control": self.control,
            "seed": self.seed,
            "models": {
                name: {"kind": BENCHES[name].kind, "about": BENCHES[name].about}
                for name in self.models
            },
            "scores": [asdict(each) for each in self.scores],
        }


def print_scores(scores: Scores) -> None:
    """Print a table for each model, and below it why figures are missing."""
    hush()
    console = Console()
    for model in scores.models:
        bench = BENCHES[model]
        console.print(Text(f"{model} · {bench.kind}", style="bold"))
        console.print(Text(bench.about))
        console.print(_table(scores, model))
        for line in _reasons(scores, [model]):
            console.print(Text(line))
        console.print()
    console.print(Text(READING))


def _table(scores: Scores, model: str) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column("method", overflow="fold")
    for name in (*BENCHES[model].figures, "inputs"):
        table.add_column(name, justify="right", overflow="fold")
    for method in scores.methods:
        score = scores.of(model, method)
        cells = _cells(score, "{0.mean:.2f} ({0.low:.2f}–{0.high:.2f})")
        table.add_row(*map(Text, (method, *cells, _inputs([score]))))
    return table


def markdown(scores: Scores) -> str:
    """Write one table for each kind of known truth, with a row for each method."""
    blocks = []
    for kind, about in KINDS.items():
        models = [model for model in scores.models if BENCHES[model].kind == kind]
        if models:
            lines = _rows(scores, models)
            reasons = [f"- {line}" for line in _reasons(scores, models)]
            blocks.append("\n\n".join([f"### {kind.capitalize()}", f"{about.capitalize()}."]))
            blocks.append("\n".join(lines))
            blocks += ["\n".join(reasons)] if reasons else []
    return "\n\n".join([*blocks, READING])


def _rows(scores: Scores, models: Sequence[str]) -> Iterator[str]:
    names = [f"{model}<br>{name}" for model in models for name in BENCHES[model].figures]
    yield _row("method", *names, "inputs")
    yield _row("---", *["---:"] * (len(names) + 1))
    for method in scores.methods:
        own = [scores.of(model, method) for model in models]
        form = "{0.mean:.2f}<br>{0.low:.2f}–{0.high:.2f}"
        cells = [cell for score in own for cell in _cells(score, form)]
        yield _row(f"`{method}`", *cells, _inputs(own))


def _row(*cells: Any) -> str:
    return f"| {' | '.join(map(str, cells))} |"


def _cells(score: Score, form: str) -> list[str]:
    if score.figures is None:
        return [NONE] * len(BENCHES[score.model].figures)
    return [form.format(figure) for figure in score.figures.values()]


def _inputs(scores: Sequence[Score]) -> str:
    """Say how many inputs the figures come from: a number, or the least and the most."""
    figures: list[Estimate] = [each for s in scores if s.figures for each in s.figures.values()]
    counts = sorted({figure.inputs for figure in figures})
    return "–".join(map(str, dict.fromkeys([counts[0], counts[-1]]))) if counts else NONE


def _reasons(scores: Scores, models: Sequence[str]) -> list[str]:
    """Say why figures are missing: each reason once, with all the models it holds for."""
    missing: dict[tuple[str, str], list[str]] = {}
    for score in scores.scores:
        if score.model in models and score.reason:
            missing.setdefault((score.method, score.reason), []).append(score.model)
    return [
        f"{NONE} {method} on {', '.join(where)}: {reason}"
        for (method, reason), where in missing.items()
    ]
