"""The commands `tree` and `triggers`."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer

from attlas.cli.options import (
    AsJson,
    Data,
    Device,
    Dtype,
    Html,
    Image,
    Model,
    Save,
    Split,
    Target,
    Text,
    Truncate,
)
from attlas.cli.show import print_found, quiet_libraries, read_text


def tree(
    text: Text = "",
    model: Model = "sentiment",
    target: Target = None,
    pair: Annotated[str | None, typer.Option(help="A second text.")] = None,
    image: Image = None,
    tau: Annotated[
        float, typer.Option(help="Keep edges above this share of the largest in their layer.")
    ] = 0.4,
    lambda_: Annotated[
        float, typer.Option("--lambda", help="What an edge costs, in probability.")
    ] = 0.0,
    variant: Annotated[str, typer.Option(help="published or released.")] = "published",
    root: Annotated[int | None, typer.Option(help="The token to start from, by its place.")] = None,
    steps: Annotated[
        int | None, typer.Option(help="Of the integral; else as many as it takes.")
    ] = None,
    html: Html = None,
    figure: Annotated[
        Path | None, typer.Option("--figure", "--svg", help="Draw it: .svg, .png or .pdf.")
    ] = None,
    save: Save = None,
    truncate: Truncate = False,
    device: Device = None,
    dtype: Dtype = None,
    as_json: AsJson = False,
) -> None:
    """Show how a prediction came together: which token read which, layer by layer.

    Example: attlas tree "not a great film, but I could not look away" --svg tree.svg
    """
    quiet_libraries()
    from attlas.heads.tree import attribution_tree
    from attlas.models.load import load

    found = attribution_tree(
        load(model, device=device, dtype=dtype),
        read_text(text, pair, image),
        target,
        tau=tau,
        lambda_=lambda_,
        variant=variant,
        root=root,
        steps=steps,
        truncate=truncate,
    )
    if figure is not None:
        found.to_figure(figure)
    print_found(found, html, save, as_json, drawn=[figure])


def triggers(
    model: Model = "sentiment",
    data: Data = "reviews",
    split: Split = None,
    texts: Annotated[int | None, typer.Option(help="Take so many texts, all if not given.")] = None,
    count: Annotated[int, typer.Option(help="How many triggers to try.")] = 10,
    draws: Annotated[int, typer.Option(help="Draws of random words beside each.")] = 5,
    least: Annotated[float, typer.Option(help="Try none with less attribution.")] = 0.0,
    seed: Annotated[int, typer.Option(help="Decides which texts are read, which tried on.")] = 0,
    html: Html = None,
    save: Save = None,
    device: Device = None,
    dtype: Dtype = None,
    as_json: AsJson = False,
) -> None:
    """Find words that a classifier over-trusts, and measure what they do to other texts.

    Example: attlas triggers --model sentiment --data reviews --count 10
    """
    quiet_libraries()
    from attlas.data import read_examples
    from attlas.heads.triggers import triggers as find_triggers
    from attlas.models.load import load

    subject = load(model, device=device, dtype=dtype)
    examples = read_examples(data, split=split, count=texts, seed=seed).examples
    with watching() as watch:
        found = find_triggers(
            subject, examples, count=count, draws=draws, least=least, seed=seed, watch=watch
        )
    print_found(found, html, save, as_json)


@contextmanager
def watching() -> Iterator[Callable[[Any], None]]:
    """A bar on standard error, where someone looks at it."""
    from rich.console import Console
    from rich.progress import Progress
    from rich.text import Text

    console = Console(stderr=True)
    with Progress(console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task("", total=None)

        def show(step: Any) -> None:
            what = Text(step.what).markup
            bar.update(task, description=what, completed=step.done, total=step.total)

        yield show
