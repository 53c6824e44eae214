"""The command `heads`."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any

import typer

from attlas.catalogue import check_rankings
from attlas.cli.groups.engines import EngineOptions
from attlas.cli.options import (
    DataOptions,
    LoadOptions,
    Model,
    OldCount,
    OutputOptions,
    Steps,
    Truncate,
)
from attlas.errors import UsageError

TEXTS = 200  # texts that are drawn if the user does not say how many


def heads(
    *,
    model: Model = "sentiment",
    data: DataOptions,
    by: Annotated[
        list[str] | None,
        typer.Option(
            help="The ranking: attattr, taylor, taylor_michel, accuracy_difference, attention or "
            "random; repeatable for curves."
        ),
    ] = None,
    prune_curve: Annotated[
        bool, typer.Option("--prune-curve", help="Accuracy without the least important heads.")
    ] = False,
    effectiveness: Annotated[
        bool, typer.Option("--effectiveness", help="The same, by a ranking for each text.")
    ] = False,
    redundancy: Annotated[
        bool, typer.Option("--redundancy", help="Which heads attend to the same tokens.")
    ] = False,
    out: Annotated[
        str | None,
        typer.Option(help="A Parquet file, or its address, for the scores of each text."),
    ] = None,
    sharing: EngineOptions,
    steps: Steps = 20,
    seed: Annotated[
        int,
        typer.Option(help="Decides which texts are drawn, and which ones rank heads."),
    ] = 0,
    truncate: Truncate = False,
    loading: LoadOptions,
    output: OutputOptions,
    texts: OldCount = None,
) -> None:
    """Rank heads by importance, or measure how accurate the model stays without them.

    Without --count, 200 texts are drawn.

    Example: attlas heads --model sentiment --data reviews --prune-curve --html heads.html
    """
    _check(by or (), prune_curve, effectiveness, redundancy)
    if (prune_curve or effectiveness or redundancy) and (sharing != EngineOptions() or out):
        raise UsageError("--engine, --address, --workers and --out are for the importance of heads")
    kept = {"engine": sharing.chosen(), "out": out}
    data.check()
    loading.check(model)
    output.check()
    check_rankings(by or ())
    names = [name.replace("-", "_") for name in by or ()]
    subject = loading.load(model)
    read = data.read(seed, texts or TEXTS)
    asked = _Asked(subject, read, names, steps, {"truncate": truncate})
    if redundancy:
        work = asked.redundancy()
    elif prune_curve:
        work = asked.prune_curve(seed)
    elif effectiveness:
        work = asked.effectiveness()
    else:
        work = partial(asked.importance(), **kept)
    if output.dry_run:
        output.plan(work.func, *work.args, **work.keywords)
        return
    output.show(work())


def _check(by: Sequence[str], prune_curve: bool, effectiveness: bool, redundancy: bool) -> None:
    asked = [prune_curve, effectiveness, redundancy]
    if sum(asked) > 1:
        raise UsageError("--prune-curve, --effectiveness or --redundancy: one at a time")
    if redundancy and by:
        raise UsageError("--redundancy compares heads by their attention: it takes no --by")
    if not any(asked) and len(by) > 1:
        raise UsageError("several --by need --prune-curve or --effectiveness")


@dataclass(frozen=True, eq=False)
class _Asked:
    """What the user asked for, and the calls of verbs that answer it."""

    subject: Any
    data: Any
    by: list[str]
    steps: int
    options: dict[str, Any]

    def importance(self) -> partial[Any]:
        from attlas.heads.importance import head_importance
        from attlas.heads.rankings import RANKINGS

        name = self.by[0] if self.by else "attattr"
        takes_steps = "steps" in RANKINGS[name].options
        options = {**self.options, "steps": self.steps} if takes_steps else self.options
        return partial(head_importance, self.subject, self.data, name, **options)

    def prune_curve(self, seed: int) -> partial[Any]:
        from attlas.heads.curves import prune_curve

        options = {"steps": self.steps, "seed": seed, **self.options}
        return partial(prune_curve, self.subject, self.data, by=self.by, **options)

    def effectiveness(self) -> partial[Any]:
        from attlas.heads.curves import head_effectiveness

        by = self.by or ["attattr", "attention"]
        options = {"steps": self.steps, **self.options}
        return partial(head_effectiveness, self.subject, self.data, by, **options)

    def redundancy(self) -> partial[Any]:
        from attlas.heads.redundancy import head_redundancy

        return partial(head_redundancy, self.subject, self.data, **self.options)
