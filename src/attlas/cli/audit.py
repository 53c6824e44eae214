"""The command `audit`."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from time import time
from typing import Annotated, Any

import typer

from attlas.catalogue import REMOVALS, check_names, check_word
from attlas.cli.groups.engines import EngineOptions
from attlas.cli.options import AsJson, DataOptions, DryRun, LoadOptions, Model, Truncate
from attlas.cli.output import (
    print_json,
    print_plan,
    print_result,
    stoppable,
)
from attlas.engine import Engine
from attlas.errors import UsageError, refuse_address
from attlas.progress import Step, Watch, say, watched

_BESIDE = "The verdict does not depend on it."


def audit(
    *,
    model: Model = "sentiment",
    data: DataOptions,
    out: Annotated[
        Path | None, typer.Option(help="The folder for report.html and all figures.")
    ] = None,
    method: Annotated[
        list[str] | None, typer.Option(help=f"Repeatable; all if not given. {_BESIDE}")
    ] = None,
    measure: Annotated[
        list[str] | None, typer.Option(help=f"Repeatable; all if not given. {_BESIDE}")
    ] = None,
    trial: Annotated[
        list[str] | None,
        typer.Option(help=f"Repeatable; all if not given; none for no trial. {_BESIDE}"),
    ] = None,
    removal: Annotated[
        list[str] | None,
        typer.Option(help=f"delete, mask, pad, zero_embedding, knock_out; repeatable. {_BESIDE}"),
    ] = None,
    floor: Annotated[
        float | None,
        typer.Option(
            help="How much of what matters the weights must find, from 0 (chance) to 1 (all); "
            "0.3 if not given."
        ),
    ] = None,
    margin: Annotated[
        float | None,
        typer.Option(
            help="How far they may stay behind the best method without attention; 0.1 if not given."
        ),
    ] = None,
    retrain: Annotated[
        str | None,
        typer.Option(help="Labelled texts: train copies again without the highest tokens."),
    ] = None,
    masked_finetune: Annotated[
        str | None,
        typer.Option(help="Labelled texts: audit a copy that has learned them with masked words."),
    ] = None,
    quick: Annotated[
        bool, typer.Option("--quick", help="Get a first verdict from 60 texts.")
    ] = False,
    sharing: EngineOptions,
    table: Annotated[
        bool, typer.Option("--table", help="Print all figures, not the answer alone.")
    ] = False,
    dry_run: DryRun = False,
    seed: Annotated[int, typer.Option(help="Decides all that is drawn at random.")] = 0,
    truncate: Truncate = False,
    loading: LoadOptions,
    as_json: AsJson = False,
    joining: Annotated[bool, typer.Option("--join", hidden=True)] = False,
) -> None:
    """Ask whether attention may be read as an explanation, for your model and your texts.

    An audit that was stopped continues if the same command is run again.

    Example: attlas audit --model FOLDER --data reviews.csv --text review --label stars --out audit
    """
    started = time()
    chosen = {"method": method, "measure": measure, "trial": trial, "removal": removal}
    how: dict[str, Any] = {"quick": quick, "seed": seed, "truncate": truncate, "retrain": retrain}
    thresholds = {"floor": floor, "margin": margin}
    check_names("method", method or ())
    check_names("measure", measure or ())
    check_names("trial", [] if trial == ["none"] else trial or ())
    for how_removed in removal or ():
        check_word("removal", how_removed, REMOVALS)
    engine = sharing.chosen()
    if out is not None:
        refuse_address(out)
    data.check()
    if retrain is not None:
        DataOptions(data=retrain).check()
    subject = loading.load(model)
    if masked_finetune is not None:
        subject, model = _copy(subject, masked_finetune, out), str(_place(out))
    from attlas.auditing.plan import plan_audit
    from attlas.auditing.sharing import join, threads_for, usual_workers
    from attlas.auditing.verdict.rules import Rules

    plan = plan_audit(
        subject,
        methods=method,
        measures=measure,
        trials=[] if trial == ["none"] else trial,
        removal=removal,
        rules=Rules(
            floor=Rules.floor if floor is None else floor,
            margin=Rules.margin if margin is None else margin,
        ),
        **how,
        **asdict(data),
    )
    if joining and out is not None:
        join(plan, out)
        return
    count = (sharing.workers or usual_workers(plan)) if engine.is_local else 1
    work = _AuditRun(plan, engine, count)
    if dry_run:
        with threads_for(count):
            print_plan(work.expected(), as_json)
        return
    options = {"model": model, **asdict(data), **chosen, **how, **thresholds, **asdict(loading)}
    with watched(None, f"auditing {len(plan.texts)} texts") as watch:
        clock = _Clock(watch)
        tell_time = (lambda: None) if as_json else (lambda: clock.begin(work.expected().seconds))
        work = replace(work, plan=replace(plan, started=started))
        with stoppable(lambda: _stopped(clock, out), resumes=out is not None):
            report = work.do(out, _joining(options), clock.tell, tell_time)
    if as_json:
        print_json(report.to_dict())
    else:
        page = "" if out else "All figures: --table, or --out FOLDER for a page that shows them"
        print_result(report, {"whole": table}, [out / "report.html"] if out else [], page)


@dataclass(frozen=True)
class _AuditRun:
    """The work of an audit, and who does it: some processes here, or the workers of an engine."""

    plan: Any
    engine: Engine
    processes: int

    def expected(self) -> Any:
        """About what it takes."""
        from attlas.auditing.estimate import estimate
        from attlas.planning import by_workers

        on_processor = self.plan.texts.subject.device.type == "cpu"  # on a device they take turns
        found = estimate(self.plan).shared_by(self.processes if on_processor else 1)
        return by_workers(found.plan(self.plan), self.engine)

    def do(
        self,
        out: Path | None,
        words: Callable[[Path], list[str]],
        watch: Watch,
        meanwhile: Callable[[], None],
    ) -> Any:
        """Do what is left, and make the report."""
        from attlas.auditing.audit import prepared_by, run
        from attlas.auditing.sharing import run_shared
        from attlas.engine.cluster import connected

        if self.engine.is_local:
            return run_shared(self.plan, out, self.processes, words, watch, say, meanwhile)
        with connected(self.engine):
            meanwhile()
            return run(self.plan, out, watch, prepared_by(self.engine, self.plan, watch))


def _place(out: Path | None) -> Path:
    from attlas.auditing.audit import copy_folder

    if out is None:
        raise UsageError("--masked-finetune needs --out: the model's copy is written beside it")
    return copy_folder(out)


def _copy(subject: Any, data: str, out: Path | None) -> Any:
    """The copy that is audited; processes that join the audit open it from its folder."""
    place = _place(out)
    DataOptions(data=data).check()
    from attlas.training.finetune import masked_copy

    with (
        watched(None, "fine-tuning with masked words") as watch,
        stoppable(lambda: "the last whole epoch; the same command goes on:", resumes=True),
    ):
        return masked_copy(subject, data, place, watch)


class _Clock:
    """Tells how far an audit is, with about how many seconds are left, once that is known."""

    def __init__(self, watch: Watch) -> None:
        self._watch = watch
        self._end: float | None = None
        self.last = Step("", 0, 0)

    def begin(self, seconds: float) -> None:
        """It takes about so many seconds from now."""
        self._end = time() + seconds

    def tell(self, step: Step) -> None:
        """Tell a step."""
        left = None if self._end is None else max(self._end - time(), 0.0)
        self.last = replace(step, left=left)
        self._watch(self.last)


def _stopped(clock: _Clock, out: Path | None) -> str:
    from attlas.auditing.audit import stopped_note

    done = f"{clock.last.done} of {clock.last.total} parts" if clock.last.total else "no part"
    return f"{done}; {stopped_note(out)}"


def _joining(options: Mapping[str, Any]) -> Callable[[Path], list[str]]:
    """Return what makes the command line of a process that joins the audit in a folder."""
    return lambda folder: ["audit", *command_line(options), "--out", str(folder), "--join"]


def command_line(options: Mapping[str, Any]) -> list[str]:
    """Write options as a command line, from the names and values of the command's parameters."""
    return [word for name, value in options.items() for word in _option(name, value)]


def _option(name: str, value: Any) -> Iterator[str]:
    option = f"--{name.replace('_', '-')}"
    if value is True:
        yield option
    elif isinstance(value, (list, tuple)):
        for each in value:
            yield from (option, str(each))
    elif value is not None and value is not False:
        yield from (option, str(value))
