"""Options that several commands share."""

from pathlib import Path
from typing import Annotated

import typer

Text = Annotated[str, typer.Argument(help="The text, or - to read it from standard input.")]
Image = Annotated[Path | None, typer.Option(help="A picture instead of a text.")]
Target = Annotated[str | None, typer.Option(help="Label, class number, token.")]
Truncate = Annotated[bool, typer.Option("--truncate", help="Cut what is too long.")]
Model = Annotated[str, typer.Option("--model", "-m", help="Embedded name, folder or hub id.")]
Task = Annotated[str | None, typer.Option(help="What the model is for, where it does not say.")]
Device = Annotated[str | None, typer.Option(help="cpu, cuda, cuda:1, mps; chosen if not given.")]
Dtype = Annotated[str | None, typer.Option(help="float32, float16, bfloat16 or float64.")]
Unsafe = Annotated[bool, typer.Option("--unsafe-weights", help="Allow pickled weights.")]
Trust = Annotated[bool, typer.Option("--trust-remote-code", help="Run code from the model.")]
Data = Annotated[
    str,
    typer.Option(help="A name (reviews, sst2, mnli, …) or a file: csv, tsv, json, jsonl, parquet."),
]
Split = Annotated[str | None, typer.Option(help="Of the data; test if not given.")]
Html = Annotated[Path | None, typer.Option(help="Write a page.")]
Save = Annotated[Path | None, typer.Option(help="Save the result.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]
