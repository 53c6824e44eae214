"""The command line. Heavy imports stand inside the commands, so that `--help` is quick.

To add a command, write a file with a function of the same name, and add the name to `COMMANDS`.
"""

import atexit
import gc
import sys
from importlib import import_module
from typing import Annotated

import typer

from attlas.cli.options import spread
from attlas.errors import AttlasError, UsageError
from attlas.progress import watched
from attlas.version import __version__

COMMANDS = (  # in the order of the help
    "explain", "audit", "trial", "check", "methods", "models", "tree", "triggers", "heads", "train",
    "study",
)  # fmt: skip

app = typer.Typer(
    name="attlas",
    help="Open a transformer at its attention, explain what it did, and test the explanation.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)

for _name in COMMANDS:
    _module = import_module(f"attlas.cli.{_name}")
    app.command(**getattr(_module, "HOW", {}))(spread(getattr(_module, _name)))


def _show_version(asked: bool | None) -> None:
    if asked:
        typer.echo(f"attlas {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool | None,
        typer.Option("--version", callback=_show_version, is_eager=True, help="Print the version."),
    ] = None,
) -> None:
    """Open a transformer at its attention, explain what it did, and test the explanation."""


def main() -> None:
    """Run the command line; an error becomes one clear line and an exit status."""
    gc.set_threshold(20_000)  # importing torch makes much that stays: it is searched less often
    atexit.register(gc.freeze)  # or Python looks at all that torch has made before it ends
    try:
        with watched(None, ""):
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
