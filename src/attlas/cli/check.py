"""The command `check`."""

from typing import Annotated

import typer

from attlas.cli.options import AsJson, LoadOptions
from attlas.cli.output import print_json, print_result
from attlas.errors import AttlasError


def check(
    *,
    model: Annotated[str, typer.Argument(help="A built-in name, a folder or a hub id.")] = (
        "sentiment"
    ),
    loading: LoadOptions,
    as_json: AsJson = False,
) -> None:
    """Check that a model is opened exactly, and say which methods can run on it.

    Example: attlas check sentiment
    """
    subject = loading.load(model)
    from attlas.checking import check as check_subject

    result = check_subject(subject)
    if as_json:
        print_json(result.to_dict())
    else:
        print_result(result, {})
    if not result.passed:
        raise AttlasError(f"{model} is not opened exactly")
