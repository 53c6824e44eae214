"""The command `methods`."""

from typing import Annotated

import typer

from attlas.cli.options import AsJson
from attlas.cli.show import print_json, print_methods, quiet_libraries
from attlas.errors import UsageError


def methods(
    score: Annotated[
        bool, typer.Option("--score", help="Score them on models of known truth; takes minutes.")
    ] = False,
    model: Annotated[
        list[str] | None, typer.Option("--model", "-m", help="Score on this model; repeatable.")
    ] = None,
    method: Annotated[list[str] | None, typer.Option(help="Score this one; repeatable.")] = None,
    count: Annotated[
        int | None, typer.Option(help="Inputs from each model, 100 if not given; dear: a quarter.")
    ] = None,
    seed: Annotated[int | None, typer.Option(help="Decides which inputs, 0 if not given.")] = None,
    markdown: Annotated[bool, typer.Option("--markdown", help="Print Markdown.")] = False,
    as_json: AsJson = False,
) -> None:
    """List the methods, or score them where it is known what the model relies on.

    Example: attlas methods --score --model recall --method raw_attention
    """
    quiet_libraries()
    from attlas.methods import METHODS

    given = {"count": count, "seed": seed}
    numbers = {name: value for name, value in given.items() if value is not None}
    if not score:
        if model or method or numbers or markdown:
            raise UsageError("--model, --method, --count, --seed and --markdown go with --score")
        print_methods(METHODS, as_json)
        return
    if markdown and as_json:
        raise UsageError("--markdown or --json, not both")
    from attlas.cli import scores
    from attlas.scoring import score as score_methods

    with scores.watching() as watch:
        found = score_methods(model or (), method or (), watch=watch, **numbers)
    if as_json:
        print_json(found.payload())
    elif markdown:
        print(scores.markdown(found))
    else:
        scores.print_scores(found)
