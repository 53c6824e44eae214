"""The application: reads a body, asks the laboratory, and answers in JSON."""

import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from functools import cache, partial
from importlib.resources import files
from typing import Any

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from attlas.serving.errors import NoSuchThing, Refused, refusal_of
from attlas.serving.guard import COOKIE, Guard, answer_refusal
from attlas.serving.laboratory import Laboratory
from attlas.serving.routes import ROUTES, ApiRoute, Sent, description
from attlas.serving.settings import Settings
from attlas.views.page import view_script, view_style

JSON = "application/json"
MEDIA = {"html": "text/html", "js": "text/javascript", "css": "text/css", "svg": "image/svg+xml"}
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
    handlers: dict[Any, Any] = {HTTPException: _not_routed}
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
