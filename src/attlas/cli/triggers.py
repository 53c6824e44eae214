"""The command `triggers`."""

from dataclasses import replace
from typing import Annotated, Any

import typer

from attlas.cli.options import DataOptions, LoadOptions, Model, OldCount, OutputOptions
from attlas.errors import UsageError
from attlas.progress import say

OLD_COUNT = (
    "attlas: --count without --candidates is still the number of triggers; in the next version "
    "it is the number of texts"
)


def triggers(
    *,
    model: Model = "sentiment",
    data: DataOptions,
    candidates: Annotated[
        int | None, typer.Option(help="How many triggers to try; 10 if not given.")
    ] = None,
    draws: Annotated[
        int, typer.Option(help="How often random words are drawn for comparison.")
    ] = 5,
    least: Annotated[
        float, typer.Option(help="Skip triggers with an attribution below this.")
    ] = 0.0,
    seed: Annotated[
        int, typer.Option(help="Decides which texts triggers come from, and which they are put in.")
    ] = 0,
    loading: LoadOptions,
    output: OutputOptions,
    texts: OldCount = None,
) -> None:
    """Find words that a classifier over-trusts, and measure what they do to other texts.

    Example: attlas triggers --model sentiment --data reviews --candidates 10
    """
    if candidates is None and data.count is not None:
        say(OLD_COUNT)
        candidates, data = data.count, replace(data, count=None)
    if texts is not None and data.count is not None:
        raise UsageError("--texts is called --count now: give one of them")
    data.check()
    output.check()
    subject = loading.load(model)
    from attlas.heads.triggers import triggers as find_triggers

    read = data.read(seed, texts)
    how: dict[str, Any] = {"candidates": candidates, "draws": draws, "least": least, "seed": seed}
    if output.dry_run:
        output.plan(find_triggers, subject, read, **how)
        return
    output.show(find_triggers(subject, read, **how))
