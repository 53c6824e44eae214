"""The server: listens, prints where, and stops cleanly when it is told to."""

import logging
import os
import socket
import sys
import webbrowser
from collections.abc import Callable
from pathlib import Path

import uvicorn

from attlas.errors import UsageError
from attlas.serving.app import make_app
from attlas.serving.jobs.board import warm_up
from attlas.serving.logs import JsonHandler, log
from attlas.serving.settings import Settings

PATIENCE = 5  # seconds that requests have to end when the server is told to stop


def kept_folder() -> Path:
    """Where jobs are kept by default: the folder for the user's data."""
    home = Path.home()
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA", home)) / "attlas" / "serve"
    if sys.platform == "darwin":
        return home / "Library" / "Application Support" / "attlas" / "serve"
    return Path(os.environ.get("XDG_DATA_HOME") or home / ".local" / "share") / "attlas" / "serve"


def run(settings: Settings, open_page: bool, say: Callable[[str], None]) -> None:
    """Serve until told to stop (SIGTERM, SIGINT)."""
    listening = _listen(settings)
    port = listening.getsockname()[1]
    address = address_of(settings, port)
    app = make_app(settings)
    _log_as_json()
    warm_up()
    configuration = uvicorn.Config(
        app,
        log_config=None,
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=PATIENCE,
        h11_max_incomplete_event_size=64 * 1024,
        limit_concurrency=1000,
    )
    say(f"Attlas is at {address}")
    say("Ctrl+C stops it; unfinished jobs go on at the next start.")
    if open_page:
        webbrowser.open(address)
    log("info", "started", host=settings.host, port=port, models=list(app.laboratory.shelf.entries))
    uvicorn.Server(configuration).run(sockets=[listening])
    log("info", "stopped")


def address_of(settings: Settings, port: int) -> str:
    """What to open in a browser."""
    anywhere = settings.host in ("0.0.0.0", "::", "")
    host = socket.gethostname() if anywhere else settings.host
    shown = f"[{host}]" if ":" in host else host
    token = f"?token={settings.token}" if settings.token else ""
    return f"http://{shown}:{port}/{token}"


def _listen(settings: Settings) -> socket.socket:
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    listening = socket.socket(family)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((settings.host, settings.port))
    except OSError as problem:
        listening.close()
        raise UsageError(
            f"cannot listen at {settings.host}:{settings.port}: {problem.strerror}"
        ) from problem
    return listening


def _log_as_json() -> None:
    for name in ("uvicorn", "uvicorn.error", "asyncio"):
        logger = logging.getLogger(name)
        logger.handlers, logger.propagate = [JsonHandler()], False
        logger.setLevel(logging.WARNING)
