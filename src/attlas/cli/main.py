"""The commands. What is heavy is imported inside them, so that `--help` is quick."""

import sys
from typing import Annotated

import typer

from attlas.cli import audit, explain, heads, importance, methods, models, study
from attlas.errors import AttlasError, UsageError
from attlas.version import __version__

app = typer.Typer(
    name="attlas",
    help="Open a transformer at its attention, explain what it did, and test the explanation.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)

app.command()(explain.explain)
app.command()(audit.audit)
app.command()(models.check)
app.command()(methods.methods)
app.command()(models.models)
app.command()(heads.tree)
app.command()(heads.triggers)
app.command()(importance.heads)
app.command()(study.study)


def _show_version(wanted: bool | None) -> None:
    if wanted:
        typer.echo(f"attlas {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool | None,
        typer.Option("--version", callback=_show_version, is_eager=True, help="Print it."),
    ] = None,
) -> None:
    """Open a transformer at its attention, explain what it did, and test the explanation."""


def main() -> None:
    """Run the command line: one clear line and a status for whatever goes wrong."""
    try:
        app()
    except UsageError as problem:
        _fail(problem, 2)
    except AttlasError as problem:
        _fail(problem, 1)
    except BrokenPipeError:  # the reader of our output has gone
        sys.stderr.close()
        sys.exit(1)


def _fail(problem: Exception, status: int) -> None:
    line = " ".join(str(problem).split())
    print(f"attlas: {line}", file=sys.stderr)
    sys.exit(status)
