"""The command `tree`."""

from pathlib import Path
from typing import Annotated, Any

import typer

from attlas.catalogue import VARIANTS, check_word
from attlas.cli.options import InputOptions, LoadOptions, Model, OutputOptions, Target, Truncate


def tree(
    *,
    inputs: InputOptions,
    model: Model = "sentiment",
    target: Target = None,
    tau: Annotated[
        float, typer.Option(help="Keep edges above this share of the largest in their layer.")
    ] = 0.4,
    lambda_: Annotated[
        float, typer.Option("--lambda", help="The cost of an edge, in probability.")
    ] = 0.0,
    variant: Annotated[str, typer.Option(help="published or released.")] = "published",
    root: Annotated[int | None, typer.Option(help="The position of the root token.")] = None,
    steps: Annotated[
        int | None, typer.Option(help="Steps of the integral; as many as needed if not given.")
    ] = None,
    figure: Annotated[
        Path | None, typer.Option("--figure", "--svg", help="Draw it: .svg, .png or .pdf.")
    ] = None,
    truncate: Truncate = False,
    loading: LoadOptions,
    output: OutputOptions,
) -> None:
    """Show how a prediction came together: which token read which, layer by layer.

    Example: attlas tree "not a great film, but I could not look away" --svg tree.svg
    """
    text = inputs.read()
    check_word("variant", variant, VARIANTS)
    output.check()
    if figure is not None:
        from attlas.views.tree_drawing import check_ending

        check_ending(figure.suffix)
    subject = loading.load(model)
    from attlas.heads.tree import attribution_tree

    how: dict[str, Any] = {"tau": tau, "lambda_": lambda_, "variant": variant, "root": root}
    how |= {"steps": steps, "truncate": truncate}
    if output.dry_run:
        output.plan(attribution_tree, subject, text, target, **how)
        return
    result = attribution_tree(subject, text, target, **how)
    if figure is not None:
        result.to_figure(figure)
    output.show(result, drawn=[] if figure is None else [figure])
