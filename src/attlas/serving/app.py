"""The server: reads a body, asks the laboratory, and answers in JSON, until it is told to stop."""

import json
import logging
import os
import socket
import sys
import threading
import webbrowser
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from contextvars import copy_context
from functools import cache, partial
from importlib.resources import files
from pathlib import Path
from typing import Any

import uvicorn
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from attlas.errors import UsageError
from attlas.progress import unseen
from attlas.results.support.lock import locked
from attlas.results.support.tables import make_folder
from attlas.serving.errors import NoSuchThing, Refused, refusal_of
from attlas.serving.guard import COOKIE, Guard, answer_refusal
from attlas.serving.jobs.board import warm_up
from attlas.serving.laboratory import Laboratory
from attlas.serving.logs import JsonHandler, log
from attlas.serving.routes import ROUTES, ApiRoute, Sent, description
from attlas.serving.settings import Settings
from attlas.views.page import view_script, view_style

JSON = "application/json"
MEDIA = {"html": "text/html", "js": "text/javascript", "css": "text/css", "svg": "image/svg+xml"}
BACKLOG = 2048
LOCK = "lock"  # in the folder of the jobs
PATIENCE = 5  # seconds that requests have to end when the server is told to stop
Endpoint = Callable[[Request], Awaitable[Response]]


def make_app(settings: Settings) -> Guard:
    """The application for these settings, behind its guard."""
    lab = Laboratory(settings)

    @asynccontextmanager
    async def living(_: Starlette) -> AsyncIterator[None]:
        lab.start()
        try:
            yield
        finally:
            lab.close()

    routes = [
        Route("/", partial(_first_page, settings)),
        Route("/page/{name}", _file_of_page),
        Route("/openapi.json", partial(_described, json.dumps(description(settings)))),
        *(Route(each.path, endpoint_of(lab, each), methods=[each.method]) for each in ROUTES),
    ]
    handlers: dict[Any, Any] = {HTTPException: _not_routed, Exception: _unforeseen}
    app = Starlette(routes=routes, lifespan=living, exception_handlers=handlers)
    return Guard(app, settings, lab)


def endpoint_of(lab: Laboratory, route: ApiRoute) -> Endpoint:
    """What answers a row of the table of routes."""
    adapter = route.adapter

    async def endpoint(request: Request) -> Response:
        try:
            given = None
            if adapter is not None:
                given = adapter.validate_json(await _body(request, lab.settings.limits.bytes))
                lab.check(given)
            known = {**request.path_params, **_numbers(request, route)}
            work = partial(route.answer, lab, given, known)
            found = await lab.workers.run(work) if route.waits else work()
        except ClientDisconnect:
            return Response(status_code=400)
        except Exception as problem:
            refused = refusal_of(problem)
            if refused is None:
                raise
            return answer_refusal(refused)
        return _answered(found if isinstance(found, Sent) else Sent(found))

    return endpoint


def _answered(found: Sent) -> Response:
    """An answer; a number that JSON does not have is a mistake of ours."""
    content = found.content
    if found.media == JSON:
        content = json.dumps(content, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return Response(content, found.status, dict(found.headers), found.media)


async def _body(request: Request, most: int) -> bytes:
    """The body, if it is JSON by its type and not too large."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != JSON:
        raise Refused(415, "media type", f"the body must be sent as {JSON}")
    said = request.headers.get("content-length", "")
    too_large = Refused(413, "too large", f"a request has at most {most:,} bytes")
    if said.isdigit() and int(said) > most:
        raise too_large
    parts, size = [], 0
    async for part in request.stream():
        size += len(part)
        if size > most:
            raise too_large
        parts.append(part)
    return b"".join(parts)


def _numbers(request: Request, route: ApiRoute) -> dict[str, str]:
    """The parameters of the query; each is a whole number."""
    known = {}
    for name in route.parameters:
        given = request.query_params.get(name, "0")
        if not (given.isascii() and given.isdigit() and len(given) < 10):
            raise Refused(422, "invalid", f"{name} is a whole number, 0 or more", name)
        known[name] = given
    return known


async def _first_page(settings: Settings, request: Request) -> Response:
    """The page; a token in its address is put into a cookie, and the address is cleaned."""
    if settings.token is None or "token" not in request.query_params:
        return page_file("index.html")
    answer = RedirectResponse("/", 303)
    answer.set_cookie(COOKIE, settings.token, httponly=True, samesite="lax", path="/")
    return answer


async def _file_of_page(request: Request) -> Response:
    try:
        return page_file(request.path_params["name"])
    except NoSuchThing as refused:
        return answer_refusal(refused)


async def _described(text: str, _: Request) -> Response:
    return Response(text, media_type=JSON)


async def _unforeseen(_: Request, __: Exception) -> Response:
    says = "this should not have happened; the log has the details"
    return answer_refusal(Refused(500, "error", says))


async def _not_routed(_: Request, problem: HTTPException) -> Response:
    if problem.status_code == 405:
        refused = Refused(405, "method", "this address takes other methods")
        return answer_refusal(refused, dict(problem.headers or {}))
    return answer_refusal(NoSuchThing("there is no such page"))


def page_file(name: str) -> Response:
    """One file of the page; `views.js` and `views.css` are those of all views."""
    known = page_files()
    if name not in known:
        raise NoSuchThing("there is no such page")
    kind = MEDIA[name.rpartition(".")[2]]
    return Response(known[name], media_type=f"{kind}; charset=utf-8")


@cache
def page_files() -> dict[str, str]:
    """All files by name."""
    folder = files("attlas.serving").joinpath("page")
    own = {
        each.name: each.read_text("utf-8")
        for each in folder.iterdir()
        if each.name.rpartition(".")[2] in MEDIA
    }
    return {**own, "views.js": view_script(), "views.css": view_style()}


def kept_folder() -> Path:
    """Where jobs are kept by default: the folder for the user's data."""
    home = Path.home()
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA", home)) / "attlas" / "serve"
    if sys.platform == "darwin":
        return home / "Library" / "Application Support" / "attlas" / "serve"
    return Path(os.environ.get("XDG_DATA_HOME") or home / ".local" / "share") / "attlas" / "serve"


def run(settings: Settings, open_page: bool, say: Callable[[str], None]) -> None:
    """Serve until told to stop (SIGTERM, SIGINT); `say` gets the address to open.

    The folder of the jobs is one server's: another would begin those that this one runs.
    """
    make_folder(settings.keep)
    with locked(settings.keep / LOCK, "folder (--keep)"):
        _serve(settings, open_page, say)


def _serve(settings: Settings, open_page: bool, say: Callable[[str], None]) -> None:
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
    say(address)
    if open_page:
        webbrowser.open(address)
    log("info", "started", host=settings.host, port=port, models=list(app.laboratory.shelf.entries))
    with unseen():  # standard error is the log
        threading.Thread(target=copy_context().run, args=[app.laboratory.load], daemon=True).start()
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
        listening.listen(BACKLOG)  # who comes before all is ready waits
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
