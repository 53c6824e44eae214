"""The command `train`."""

from pathlib import Path
from typing import Annotated, Any

import typer

from attlas.cli.options import AsJson, Device, DryRun
from attlas.cli.output import print_json, print_line, print_plan, quiet_libraries, stoppable


def train(
    *,
    model: Annotated[
        str,
        typer.Option(
            "--model",
            "-m",
            help="bilstm, lstm, orthogonal_lstm, cnn, average, flat, hierarchical (each also with "
            "_cnn or _plain), bahdanau or luong.",
        ),
    ] = "bilstm",
    data: Annotated[
        str, typer.Option(help="A set by name (sst, imdb, facts, dates, …) or a file.")
    ] = "sst",
    out: Annotated[Path, typer.Option(help="The folder of the model; stopped work goes on there.")],
    base: Annotated[
        str | None,
        typer.Option(help="A transformer to train on instead: a folder or a built-in name."),
    ] = None,
    objective: Annotated[
        list[str] | None,
        typer.Option(
            help="What to train for beside the labels: NAME:weight=0.5,OPTION=VALUE; repeatable."
        ),
    ] = None,
    attention: Annotated[
        str | None, typer.Option(help="additive, scaled_dot or uniform; additive if not given.")
    ] = None,
    vectors: Annotated[
        Path | None,
        typer.Option(help="Word vectors: a folder or wheel with safetensors and a tokenizer."),
    ] = None,
    vector_size: Annotated[int, typer.Option(help="The width of random vectors.")] = 256,
    dev: Annotated[str | None, typer.Option(help="Other data to choose the best epoch by.")] = None,
    test: Annotated[str | None, typer.Option(help="Other data to test on.")] = None,
    label: Annotated[
        list[str] | None, typer.Option(help="Only texts with this label; repeatable.")
    ] = None,
    spans: Annotated[
        str | None, typer.Option(help="The column of the marked words, of a file.")
    ] = None,
    count: Annotated[int | None, typer.Option(help="How many texts to train on.")] = None,
    fewest: Annotated[
        int, typer.Option(help="How often a word must occur to have its own vector.")
    ] = 1,
    longest: Annotated[int, typer.Option(help="The most tokens of a text.")] = 512,
    epochs: Annotated[int | None, typer.Option(help="As in its paper if not given.")] = None,
    rows: Annotated[int | None, typer.Option(help="Texts in a batch.")] = None,
    rate: Annotated[float | None, typer.Option(help="The learning rate.")] = None,
    patience: Annotated[
        int | None, typer.Option(help="Stop after so many epochs that were no better.")
    ] = None,
    seed: Annotated[int, typer.Option(help="Decides everything that is random.")] = 0,
    device: Device = None,
    as_json: AsJson = False,
    dry_run: DryRun = False,
) -> None:
    """Train an attention model: a BiLSTM and its like, or a transformer that you have.

    Example: attlas train --model bilstm --data sst --vectors wordllama --out models/bilstm

    Example: attlas train --base FOLDER --data eraser_movies --objective rationale --out better
    """
    quiet_libraries()
    from attlas.training.train import train as train_model

    how: dict[str, Any] = {
        "base": base,
        "objectives": objective or None,
        "spans": spans,
        "attention": attention,
        "vectors": vectors,
        "vector_size": vector_size,
        "dev": dev,
        "test": test,
        "labels": label or None,
        "count": count,
        "fewest": fewest,
        "longest": longest,
        "epochs": epochs,
        "rows": rows,
        "rate": rate,
        "patience": patience,
        "seed": seed,
        "device": device,
    }
    if dry_run:
        from attlas.planning import plan

        print_plan(plan(train_model, model, data, out, **how), as_json)
        return
    with stoppable(lambda: "the last whole epoch; the same command goes on:", resumes=True):
        trained = train_model(model, data, out, **how)
    if as_json:
        print_json(trained.record)
        return
    for line in trained.lines():
        print_line(line)
    print_line(f"wrote {out}; open it with: attlas check {out}")
