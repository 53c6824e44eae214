"""The command line. Heavy imports stand inside the commands, so that `--help` is quick.

To add a command, write a file with a function of the same name, and add the name to `COMMANDS`.
"""

import atexit
import gc
import inspect
import os
import sys
from contextlib import suppress
from functools import cache
from importlib import import_module
from io import TextIOWrapper
from typing import Annotated, Any

from attlas.errors import AttlasError, UsageError, first_line, is_shortage
from attlas.progress import printable, watched
from attlas.version import __version__

VERSION = "Print the version."
TITLE = "Open a transformer at its attention, explain what it did, and test the explanation."

COMMANDS = (  # in the order of the help
    "explain", "audit", "trial", "check", "methods", "models", "tree", "triggers", "heads", "train",
    "study", "serve",
)  # fmt: skip


@cache
def commands() -> Any:
    """Make the commands; importing what they need takes longer than all that is above."""
    import typer

    from attlas.cli.options import spread

    app = typer.Typer(
        name="attlas",
        help=TITLE,
        no_args_is_help=True,
        add_completion=False,
        pretty_exceptions_enable=False,
        rich_markup_mode=None,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    for name in COMMANDS:
        module = import_module(f"attlas.cli.{name}")
        command = getattr(module, name)
        summary = (inspect.getdoc(command) or "").partition("\n")[0]  # whole: typer cuts it short
        app.command(short_help=summary, **getattr(module, "HOW", {}))(spread(command))

    def show_version(asked: bool | None) -> None:
        if asked:
            typer.echo(f"attlas {__version__}")
            raise typer.Exit

    version = typer.Option("--version", callback=show_version, is_eager=True, help=VERSION)

    @app.callback(help=TITLE)
    def options(version: Annotated[bool | None, version] = None) -> None:
        pass

    return app


def main() -> None:
    """Run the command line; an error becomes one clear line and an exit status."""
    gc.set_threshold(20_000)  # importing torch makes much that stays: it is searched less often
    atexit.register(gc.freeze)  # or Python looks at all that torch has made before it ends
    if isinstance(sys.stdout, TextIOWrapper):  # a text may have signs that no encoding has
        sys.stdout.reconfigure(errors="backslashreplace")
    try:
        with watched(None, ""):
            commands()()
    except UsageError as problem:
        _fail(str(problem), 2)
    except AttlasError as problem:
        _fail(str(problem), 1)
    except BrokenPipeError:  # the reader of our output has gone
        sys.stderr.close()
        sys.exit(1)
    except (ImportError, MemoryError, OSError, RuntimeError) as problem:
        if is_shortage(problem):  # also for the libraries that are imported
            _fail(f"there is not enough memory: {first_line(problem)}", 1)
        if not isinstance(problem, OSError):
            raise
        _write_nowhere()  # files have errors of their own
        _fail(f"cannot write the output: {problem.strerror or problem}", 1)


def _fail(said: str, status: int) -> None:
    line = printable(" ".join(said.split()))
    print(f"attlas: {line}", file=sys.stderr)
    sys.exit(status)


def _write_nowhere() -> None:
    """What is left of the output goes nowhere, so that ending does not fail as well."""
    with suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
