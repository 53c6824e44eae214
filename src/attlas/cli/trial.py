"""The command `trial`."""

from dataclasses import asdict
from typing import Annotated, Any

import typer

from attlas.catalogue import SCOPES, check_word, known_options
from attlas.cli.options import (
    DataOptions,
    LoadOptions,
    Model,
    OutputOptions,
    Truncate,
    parse_options,
)


def trial(
    *,
    name: Annotated[str, typer.Argument(help="The trial; see docs/trials.", metavar="TRIAL")],
    model: Model = "sentiment",
    data: DataOptions,
    train: Annotated[
        str | None,
        typer.Option(help="Labelled texts to train on, for trials that train; named as --data."),
    ] = None,
    scope: Annotated[
        str | None, typer.Option(help="Which attention: readout, layer, all or token.")
    ] = None,
    layer: Annotated[int | None, typer.Option(help="The layer of the scope layer.")] = None,
    frozen: Annotated[
        bool, typer.Option("--frozen", help="Keep the attention of the layers above.")
    ] = False,
    specials: Annotated[
        bool, typer.Option("--specials", help="Also change weights on special tokens.")
    ] = False,
    option: Annotated[
        list[str] | None, typer.Option(help="name=value, for the trial; repeatable.")
    ] = None,
    seed: Annotated[int, typer.Option(help="Decides everything that is random.")] = 0,
    truncate: Truncate = False,
    loading: LoadOptions,
    output: OutputOptions,
) -> None:
    """Run one trial: an experiment on the attention of a model.

    Example: attlas trial permutation --data reviews --count 40 --option repeats=20

    Example: attlas trial remove_and_retrain --data test.csv --train train.csv
    """
    data.check()
    loading.check(model)
    output.check()
    check_word("scope", scope or SCOPES[0], SCOPES)
    known = known_options("trial", name)
    if known is None:
        from attlas.trials import TRIALS

        known = TRIALS[name].options
    usable = {key: each for key, each in known.items() if key != "seed"}
    options = parse_options(option or [], usable, name.replace("-", "_"))
    if train is not None:
        options["training"] = train
    where = _scope(scope, layer, frozen, specials)
    subject = loading.load(model)
    from attlas.auditing.single_trial import try_trial

    how = {"trial": name, "scope": where, **asdict(data), "truncate": truncate, "seed": seed}
    if output.dry_run:
        output.plan(try_trial, subject, **how, **options)
        return
    output.show(try_trial(subject, **how, **options))


def _scope(kind: str | None, layer: int | None, frozen: bool, specials: bool) -> Any:
    """The scope that was asked for; None if nothing was said of it."""
    from attlas.trials import Scope

    if kind is None and layer is None and not frozen and not specials:
        return None
    usual = "readout" if layer is None else "layer"
    return Scope(kind or usual, layer, frozen, specials)
