"""The command `methods`."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any

import typer

from attlas.catalogue import FAMILIES, catalogue, check_names, has_more, what_it_gives
from attlas.cli.options import AsJson, DryRun
from attlas.cli.output import print_json, print_line, print_plan, print_table, quiet_libraries
from attlas.errors import UnknownNameError, UsageError
from attlas.models.facts.places import embedded_names

_SCORED = "Score each token by "


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
    dry_run: DryRun = False,
) -> None:
    """List the methods, or score them where it is known what the model relies on.

    Example: attlas methods --score --model recall --method raw_attention
    """
    check_names("method", method or ())
    for name in model or ():
        if name.replace("-", "_") not in embedded_names():
            raise UnknownNameError("model to score on", name, embedded_names())
    given = {"count": count, "seed": seed}
    numbers: dict[str, Any] = {name: value for name, value in given.items() if value is not None}
    if not score:
        if model or method or numbers or markdown or dry_run:
            raise UsageError(
                "--model, --method, --count, --seed, --markdown and --dry-run need --score"
            )
        _print_methods(_methods(), as_json)
        return
    if markdown and as_json:
        raise UsageError("--markdown or --json, not both")
    quiet_libraries()
    from attlas.scoring import record
    from attlas.scoring import score as score_methods

    if dry_run:
        from attlas.planning import plan

        print_plan(plan(score_methods, model or (), method or (), **numbers), as_json)
        return
    scores = score_methods(model or (), method or (), **numbers)
    if as_json:
        print_json(scores.payload())
    elif markdown:
        print_line(record.markdown(scores))
    else:
        record.print_scores(scores)


def _methods() -> list[dict[str, Any]]:
    """What there is to know of each method, without importing it if that can be."""
    if not has_more("method"):
        return [
            _row(each.name, each.record, each.options, each.summary)
            for each in catalogue("method").values()
        ]
    quiet_libraries()
    from attlas.methods import METHODS

    return [_row(each.name, vars(each), each.options, each.summary) for each in METHODS]


def _row(
    name: str, record: Mapping[str, Any], options: Mapping[str, Any], summary: str
) -> dict[str, Any]:
    signed, of = record["signed"], record.get("of")
    return {
        "name": name,
        "family": record["family"],
        "signed": signed,
        "target": of,
        "needs": list(record.get("needs", ())),
        "gives": what_it_gives(signed, of, record.get("maps")),
        "cost": record.get("cost", "cheap"),
        "options": dict(options),
        "paper": record["paper"],
        "summary": summary,
    }


def _print_methods(rows: Sequence[Mapping[str, Any]], as_json: bool) -> None:
    if as_json:
        print_json(rows)
        return
    print_line("Each token is scored by …")
    for family, words in FAMILIES.items():
        print_line(words)
        print_table(
            [
                (row["name"], "±" if row["signed"] else " ", row["summary"].removeprefix(_SCORED))
                for row in rows
                if row["family"] == family
            ],
            indent=2,
        )
    print_line("± scores have a sign: for the target or against it")
