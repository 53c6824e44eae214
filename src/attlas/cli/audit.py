"""The command `audit`."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from attlas.cli.heads import watching
from attlas.cli.options import AsJson, Device, Dtype, Split, Task, Truncate, Trust, Unsafe
from attlas.cli.show import print_json, print_result, quiet_libraries
from attlas.cli.words import words

OF_THIS_PROCESS = ("out", "workers", "as_json", "joining")  # and not of those that join in


def audit(
    model: Annotated[
        str, typer.Option("--model", "-m", help="Embedded name, folder or hub id.")
    ] = "sentiment",
    data: Annotated[
        str, typer.Option(help="A file (csv, tsv, json, jsonl, parquet), a name, or a hub set.")
    ] = "reviews",
    text: Annotated[str | None, typer.Option(help="The column of the text.")] = None,
    pair: Annotated[str | None, typer.Option(help="The column of a second text.")] = None,
    label: Annotated[str | None, typer.Option(help="The column of the label.")] = None,
    spans: Annotated[str | None, typer.Option(help="The column of marked words.")] = None,
    split: Split = None,
    count: Annotated[
        int | None, typer.Option(help="So many texts, drawn by the seed; all if not given.")
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="The folder for report.html and all figures.")
    ] = None,
    method: Annotated[list[str] | None, typer.Option(help="Repeatable; all.")] = None,
    measure: Annotated[list[str] | None, typer.Option(help="Repeatable; all.")] = None,
    trial: Annotated[
        list[str] | None, typer.Option(help="Repeatable; all. none: no trial.")
    ] = None,
    removal: Annotated[
        list[str] | None,
        typer.Option(help="delete, mask, pad, zero_embedding, knock_out; repeatable."),
    ] = None,
    quick: Annotated[bool, typer.Option("--quick", help="A first verdict on 60 texts.")] = False,
    workers: Annotated[
        int | None,
        typer.Option(min=1, help="Processes that share the work; 1, or 3 on a GPU with room."),
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Say what it would take, and stop.")
    ] = False,
    seed: Annotated[int, typer.Option(help="Decides whatever is drawn.")] = 0,
    truncate: Truncate = False,
    task: Task = None,
    device: Device = None,
    dtype: Dtype = None,
    unsafe_weights: Unsafe = False,
    trust_remote_code: Trust = False,
    as_json: AsJson = False,
    joining: Annotated[bool, typer.Option("--join", hidden=True)] = False,
) -> None:
    """Ask whether attention may be read as an explanation, for your model and your texts.

    Stopped and started again with the same words, it goes on where it was.

    Example: attlas audit --model FOLDER --data reviews.csv --text review --label stars --out audit
    """
    given = {name: each for name, each in locals().items() if name not in OF_THIS_PROCESS}
    quiet_libraries()
    from attlas.auditing.estimating import expect
    from attlas.auditing.planning import prepare
    from attlas.auditing.sharing import join, run_shared, usual_workers
    from attlas.models.load import load

    subject = load(
        model,
        task=task,
        device=device,
        dtype=dtype,
        unsafe_weights=unsafe_weights,
        trust_remote_code=trust_remote_code,
    )
    plan = prepare(
        subject,
        data,
        method,
        measure,
        _none(trial),
        text=text,
        pair=pair,
        label=label,
        spans=spans,
        split=split,
        count=count,
        removal=removal,
        truncate=truncate,
        quick=quick,
        seed=seed,
    )
    if joining and out is not None:
        join(plan, out)
        return
    if dry_run:
        _say(expect(plan).lines(), as_json)
        return

    def estimate() -> None:
        if not as_json:
            _say_first(expect(plan).lines()[0])

    with watching() as watch:
        report = run_shared(
            plan,
            out,
            workers or usual_workers(subject),
            _joining(given),
            watch,
            _say_first,
            estimate,
        )
    if as_json:
        print_json(report.to_dict())
    else:
        print_result(report, written=[out / "report.html"] if out else [])


def _joining(given: Mapping[str, Any]) -> Callable[[Path], list[str]]:
    """The words that were typed, with the folder in which the others join in."""
    return lambda folder: ["audit", *words(given), "--out", str(folder), "--join"]


def _none(trials: list[str] | None) -> list[str] | None:
    return [] if trials == ["none"] else trials


def _say(lines: list[str], as_json: bool) -> None:
    if as_json:
        print_json({"estimate": lines})
    else:
        print("\n".join(lines))


def _say_first(line: str) -> None:
    typer.echo(line, err=True)
