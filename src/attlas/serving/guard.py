"""The guard: who may ask (Host, site, token), what every answer carries, and the log."""

import hmac
import ipaddress
import json
from collections.abc import Mapping
from http.cookies import CookieError, SimpleCookie
from time import monotonic
from typing import Any
from urllib.parse import parse_qs, urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from attlas.serving.errors import Refused, refusal_of
from attlas.serving.laboratory import Laboratory
from attlas.serving.logs import log
from attlas.serving.settings import LOOPBACK, Settings

COOKIE = "attlas_token"
OPEN_PATHS = ("/health",)  # need no token
_FETCHED_HERE = ("same-origin", "none")
HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; "
    "img-src 'self' data:; connect-src 'self'; frame-src 'self'; base-uri 'none'; "
    "form-action 'none'; frame-ancestors 'none'",
}

# A report carries its own policy and its script; here it gets no origin of its own either.
REPORT_HEADERS = {
    "Content-Security-Policy": "sandbox allow-scripts; default-src 'none'; "
    "script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data:; frame-ancestors 'self'"
}


class Guard:
    """The application behind its checks; whatever happens, there is an answer and a line of log."""

    def __init__(self, app: ASGIApp, settings: Settings, laboratory: Laboratory) -> None:
        self._app, self._settings, self.laboratory = app, settings, laboratory

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        if scope["type"] != "http":  # there are no sockets here
            await send({"type": "websocket.close", "code": 1000})
            return
        begun, seen = monotonic(), {"status": 0, "bytes": 0}

        async def sending(message: Message) -> None:
            if message["type"] == "http.response.start":
                seen["status"] = message["status"]
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers.setdefault(name, value)
            seen["bytes"] += len(message.get("body", b""))
            await send(message)

        try:
            await self._answer(scope, receive, sending)
        except Exception as problem:
            log("error", "a request failed", path=scope["path"], problem=problem)
        finally:
            facts = {"method": scope["method"], "path": scope["path"], **seen}
            log("info", "request", ms=round(1000 * (monotonic() - begun), 1), **facts)

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers = Headers(scope=scope)
        try:
            check_host(self._settings, headers.get("host"))
            check_site(headers, scope["method"], scope["path"])
            check_token(self._settings, scope["path"], *_tokens(scope, headers))
        except Exception as problem:
            refused = refusal_of(problem) or Refused(400, "bad request", "the headers are wrong")
            await answer_refusal(refused)(scope, receive, send)
            return
        await self._app(scope, receive, send)


def answer_refusal(refused: Refused, headers: Mapping[str, str] | None = None) -> Response:
    """A refusal as an answer."""
    more = dict(headers or {})
    if refused.status == 429:
        more["Retry-After"] = "1"
    if refused.status == 401:
        more["WWW-Authenticate"] = "Bearer"
    content = json.dumps(refused.to_dict())
    return Response(content, refused.status, more, media_type="application/json")


def check_host(settings: Settings, host: str | None) -> None:
    """Refuse a name that is not this server's: a foreign page may have it point here.

    An address in numbers cannot be bent, so a server for others takes any.
    """
    name = _name_of(host)
    allowed = {*LOOPBACK, settings.host.lower(), *(each.lower() for each in settings.names)}
    if name in allowed or (not settings.is_local and _is_address(name)):
        return
    raise Refused(421, "host", "this server is not reached by that name; --allow-host adds one")


def _name_of(host: str | None) -> str:
    try:
        return (urlsplit(f"//{host or ''}").hostname or "").rstrip(".")
    except ValueError:
        return ""


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


def check_site(headers: Mapping[str, str], method: str, path: str) -> None:
    """Refuse what another site's page asks; following a link to the page itself is allowed."""
    origin = headers.get("origin")
    if origin is not None and urlsplit(origin).netloc != headers.get("host"):
        raise Refused(403, "cross-site", "requests from pages of other sites are refused")
    fetched = headers.get("sec-fetch-site")
    follows = headers.get("sec-fetch-mode") == "navigate" and (method, path) == ("GET", "/")
    if fetched is not None and fetched not in _FETCHED_HERE and not follows:
        raise Refused(403, "cross-site", "requests from pages of other sites are refused")


def check_token(settings: Settings, path: str, *given: str) -> None:
    """Refuse a request without the token, where there is one."""
    if settings.token is None or path in OPEN_PATHS:
        return
    wanted = settings.token.encode()
    if not any(hmac.compare_digest(each.encode(errors="replace"), wanted) for each in given):
        raise Refused(401, "token", "a token is needed: Authorization: Bearer TOKEN")


def _tokens(scope: Any, headers: Headers) -> list[str]:
    """The tokens that a request carries: in its header, its cookie, or the page's address."""
    scheme, _, bearer = headers.get("authorization", "").partition(" ")
    found = [bearer.strip()] if scheme.lower() == "bearer" else []
    try:
        cookie = SimpleCookie(headers.get("cookie", "")).get(COOKIE)
    except CookieError:
        cookie = None
    found += [cookie.value] if cookie else []
    if scope["path"] == "/":
        query = parse_qs(scope["query_string"].decode("latin-1"), max_num_fields=20)
        found += query.get("token", [])
    return found
