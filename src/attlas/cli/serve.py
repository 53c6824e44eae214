"""The command `serve`."""

import secrets
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated

import typer

from attlas.cli.options import AsJson
from attlas.cli.output import print_json, print_line, quiet_libraries
from attlas.errors import UsageError

NEEDED = ("starlette", "uvicorn", "pydantic")


def serve(
    *,
    models: Annotated[
        list[str] | None,
        typer.Argument(help="Built-in names, folders or hub ids; all built-in models by default."),
    ] = None,
    host: Annotated[
        str, typer.Option(help="The address to listen on; others than 127.0.0.1 need a token.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="The port; 0 takes a free one.")] = (
        8765
    ),
    token: Annotated[
        str | None, typer.Option(help="What requests must carry; made and printed if needed.")
    ] = None,
    allow_host: Annotated[
        list[str] | None, typer.Option(help="One more name by which browsers reach the page.")
    ] = None,
    open_page: Annotated[bool, typer.Option("--open", help="Open the page in a browser.")] = False,
    keep: Annotated[
        Path | None, typer.Option(help="A folder for jobs and reports; by default the user's own.")
    ] = None,
    most_characters: Annotated[int, typer.Option(min=1, help="Length of an input.")] = 2000,
    most_bytes: Annotated[int, typer.Option(min=1000, help="Size of a request.")] = 2_000_000,
    workers: Annotated[int, typer.Option(min=1, help="Requests that are worked on at once.")] = 2,
    queue: Annotated[int, typer.Option(min=0, help="Requests that may wait.")] = 64,
    seconds: Annotated[float, typer.Option(min=0.1, help="How long a request may take.")] = 60,
    jobs: Annotated[int, typer.Option(min=1, help="Jobs that run at once.")] = 1,
    job_queue: Annotated[int, typer.Option(min=0, help="Jobs that may wait.")] = 16,
    job_seconds: Annotated[float, typer.Option(min=1, help="How long a job may run.")] = 3600,
    as_json: AsJson = False,
) -> None:
    """Open a page on this machine for exploring models, changing their attention and arguing.

    Example: attlas serve --open
    """
    missing = [name for name in NEEDED if find_spec(name) is None]
    if missing:
        raise UsageError(f'{", ".join(missing)} is missing: pip install "attlas[serve]"')
    quiet_libraries()
    from attlas.serving.app import kept_folder, run
    from attlas.serving.settings import Limits, Settings

    limits = Limits(
        most_characters, most_bytes, workers, queue, seconds, jobs, job_queue, job_seconds
    )
    settings = Settings(
        keep or kept_folder(), tuple(models or ()), host, port, token, tuple(allow_host or ()),
        limits,
    )  # fmt: skip
    if not settings.is_local and token is None:
        settings = settings.with_token(secrets.token_urlsafe(24))
    run(settings, open_page, _say_json if as_json else _say)


def _say(address: str) -> None:
    print_line(f"Attlas is at {address}")
    print_line("Ctrl+C stops it; unfinished jobs go on at the next start.")


def _say_json(address: str) -> None:
    print_json({"address": address})
