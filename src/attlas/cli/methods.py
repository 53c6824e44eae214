"""The command `methods`."""

from collections.abc import Iterable
from typing import Annotated, Any

import typer

from attlas.cli.options import AsJson
from attlas.cli.output import print_json, print_table, quiet_libraries
from attlas.errors import UsageError


def methods(
    *,
    score: Annotated[
        bool,
        typer.Option("--score", help="Score them on models of known truth; this takes minutes."),
    ] = False,
    model: Annotated[
        list[str] | None, typer.Option("--model", "-m", help="Score on this model; repeatable.")
    ] = None,
    method: Annotated[list[str] | None, typer.Option(help="Score this method; repeatable.")] = None,
    count: Annotated[
        int | None,
        typer.Option(
            help="Inputs for each model, 100 if not given; expensive methods get a quarter."
        ),
    ] = None,
    seed: Annotated[
        int | None, typer.Option(help="Decides which inputs are drawn, 0 if not given.")
    ] = None,
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
            raise UsageError("--model, --method, --count, --seed and --markdown need --score")
        _print_methods(METHODS, as_json)
        return
    if markdown and as_json:
        raise UsageError("--markdown or --json, not both")
    from attlas.cli import score_tables
    from attlas.scoring import score as score_methods

    with score_tables.score_progress() as watch:
        scores = score_methods(model or (), method or (), watch=watch, **numbers)
    if as_json:
        print_json(scores.payload())
    elif markdown:
        print(score_tables.markdown(scores))
    else:
        score_tables.print_scores(scores)


def _print_methods(methods: Iterable[Any], as_json: bool) -> None:
    rows = [
        {
            "name": each.name,
            "family": each.family,
            "signed": each.signed,
            "target": each.of,
            "needs": list(each.needs),
            "gives": each.gives,
            "cost": each.cost,
            "options": dict(each.options),
            "paper": each.paper,
            "summary": each.summary,
        }
        for each in methods
    ]
    if as_json:
        print_json(rows)
        return
    cells = [
        (
            row["name"],
            row["family"],
            "yes" if row["signed"] else "no",
            row["target"] or "–",
            row["summary"],
        )
        for row in rows
    ]
    print_table(("method", "family", "signed", "of the", "what a score is"), cells)
