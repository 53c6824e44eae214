"""The command `study`."""

from pathlib import Path
from typing import Annotated

import typer

from attlas.catalogue import check_word
from attlas.cli.options import AsJson, Device, DryRun, Steps
from attlas.cli.output import print_json, print_line, print_plan, quiet_libraries
from attlas.errors import UsageError
from attlas.progress import watched
from attlas.studies import STUDIES, list_studies
from attlas.studies import study as run_study


def study(
    *,
    name: Annotated[str, typer.Argument(help=f"The study: {', '.join(list_studies())}.")],
    models: Annotated[
        Path, typer.Option(help="A folder with a model for each task: sst2, rte, mrpc, mnli.")
    ],
    out: Annotated[Path, typer.Option(help="The folder to write to.")],
    task: Annotated[list[str] | None, typer.Option(help="Only this task; repeatable.")] = None,
    rank_on: Annotated[int, typer.Option(help="Training texts that heads are ranked on.")] = 200,
    count: Annotated[
        int | None, typer.Option(help="Dev texts to test on; all if not given.")
    ] = None,
    effect_on: Annotated[
        int, typer.Option(help="How many of the dev texts are used for effectiveness.")
    ] = 200,
    steps: Steps = 20,
    device: Device = None,
    as_json: AsJson = False,
    dry_run: DryRun = False,
) -> None:
    """Run a published experiment again, on data from the folder that ATTLAS_DATA names.

    A task whose result is in the folder already is not run again.

    Example: attlas study attattr --models models --out results --task sst2 --count 200
    """
    check_word("study", name.replace("-", "_"), list_studies())
    if not models.is_dir():
        raise UsageError(f"{models} is no folder: --models names one with a model for each task")
    quiet_libraries()
    chosen = STUDIES[name]  # which brings torch with it
    options = {
        "models": models,
        "out": out,
        "rank_on": rank_on,
        "count": count,
        "effect_on": effect_on,
        "steps": steps,
        "device": device,
        **({"tasks": task} if task else {}),
    }
    if dry_run:
        from attlas.planning import plan

        print_plan(plan(run_study, name, **options), as_json)
        return
    with watched(None, f"running {name}") as watch:
        result = chosen.run({**options, "watch": watch})
    if as_json:
        print_json(result.to_dict())
    else:
        print_line(result.markdown())
