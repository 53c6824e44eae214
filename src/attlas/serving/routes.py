"""The table of all that can be asked: a row makes a route and its description."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any

from pydantic import TypeAdapter

from attlas.serving import answers, requests
from attlas.serving.guard import REPORT_HEADERS
from attlas.serving.jobs.store import Record
from attlas.serving.laboratory import Laboratory
from attlas.serving.settings import Settings
from attlas.serving.shelf import Shelf
from attlas.serving.work.explaining import answer_compare, answer_explain
from attlas.serving.work.intervening import answer_intervene
from attlas.serving.work.removing import answer_curves, answer_remove
from attlas.serving.work.writing import answer_code, rationale_lines
from attlas.version import __version__

READING = (400, 404, 413, 415, 422)  # what may go wrong where a body is sent
ASKING = (*READING, 429, 503)  # and where a model is asked
EVERYWHERE = (401, 403, 421)
REFERENCE = "#/components/schemas/{model}"


@dataclass(frozen=True)
class ApiRoute:
    """One thing to ask: how, what it takes, what it answers, and what may go wrong.

    `answer` gets the laboratory, the checked body (or None) and the parameters. Where it `waits`
    it asks a model, and runs in a thread.
    """

    method: str
    path: str
    summary: str
    answer: Callable[[Laboratory, Any, Mapping[str, str]], Any]
    returns: Any
    takes: Any = None
    refusals: tuple[int, ...] = ()
    statuses: tuple[int, ...] = (200,)
    media: str = "application/json"
    parameters: tuple[str, ...] = ()  # of the query; each a whole number
    waits: bool = True

    @property
    def name(self) -> str:
        """Its name in the description."""
        words = self.path.strip("/").replace("/", "_").replace("{", "").replace("}", "")
        return f"{self.method.lower()}_{words.replace('.', '_')}"

    @property
    def adapter(self) -> Any:
        """What checks the body."""
        return None if self.takes is None else TypeAdapter(self.takes)


@dataclass(frozen=True)
class Sent:
    """An answer that is not JSON, or has another status than 200."""

    content: Any  # a text, or what becomes JSON
    status: int = 200
    media: str = "application/json"
    headers: Mapping[str, str] = field(default_factory=dict)


Parameters = Mapping[str, str]


def _health(lab: Laboratory, _: None, __: Parameters) -> Record:
    known = {"status": "ok", "version": __version__, "models": len(lab.shelf.entries)}
    return known | lab.jobs.counts()


def _submit(lab: Laboratory, given: requests.AnyJob, _: Parameters) -> Sent:
    found, is_new = lab.jobs.submit(given)
    return Sent(found, 202 if is_new else 200)


def _forget(lab: Laboratory, _: None, known: Parameters) -> Record:
    lab.jobs.forget(known["id"])
    return {"id": known["id"]}


def _report(lab: Laboratory, _: None, known: Parameters) -> Sent:
    page = lab.jobs.report(known["id"])
    return Sent(page, 200, "text/html; charset=utf-8", REPORT_HEADERS)


def _rationales(_: Laboratory, given: requests.Marking, __: Parameters) -> Sent:
    named = {"Content-Disposition": 'attachment; filename="rationales.jsonl"'}
    return Sent(rationale_lines(given), 200, "application/x-ndjson", named)


def _asks(
    name: str, summary: str, answer: Callable[[Shelf, Any], Record], takes: Any, returns: Any
) -> ApiRoute:
    """A route that asks a model about the body."""

    def asked(lab: Laboratory, given: Any, _: Parameters) -> Record:
        return answer(lab.shelf, given)

    return ApiRoute("POST", f"/api/{name}", summary, asked, returns, takes, ASKING)


ROUTES = (
    ApiRoute("GET", "/health", "Whether it serves", _health, answers.Health, waits=False),
    ApiRoute(
        "GET",
        "/api/models",
        "The models, methods, rankings, removals and limits",
        lambda lab, _, __: lab.described(),
        answers.Everything,
        refusals=(429, 503),
    ),
    _asks(
        "explain",
        "The prediction, and the scores of a method",
        answer_explain,
        requests.Explaining,
        answers.ExplainAnswer,
    ),
    _asks(
        "compare",
        "Two to four explanations side by side",
        answer_compare,
        requests.Comparing,
        answers.CompareAnswer,
    ),
    _asks(
        "intervene",
        "The prediction before and after edits of the attention",
        answer_intervene,
        requests.Intervening,
        answers.InterveneAnswer,
    ),
    _asks(
        "remove",
        "The prediction without sets of tokens",
        answer_remove,
        requests.Removing,
        answers.RemoveAnswer,
    ),
    _asks(
        "curves",
        "Removal curves: the method's own order, random orders, the best one",
        answer_curves,
        requests.Curving,
        answers.CurvesAnswer,
    ),
    ApiRoute(
        "POST",
        "/api/code",
        "The Python lines that compute what is seen",
        lambda lab, given, _: answer_code(lab.shelf, given),
        answers.CodeAnswer,
        requests.State,
        READING,
        waits=False,
    ),
    ApiRoute(
        "POST",
        "/api/rationales",
        "What a person marked, as JSON lines to train on",
        _rationales,
        None,
        requests.Marking,
        READING,
        media="application/x-ndjson",
        waits=False,
    ),
    ApiRoute(
        "POST",
        "/api/jobs",
        "Begin long work",
        _submit,
        answers.JobAnswer,
        requests.JobRequest,
        ASKING,
        statuses=(200, 202),
    ),
    ApiRoute(
        "GET",
        "/api/jobs",
        "All jobs, the newest first",
        lambda lab, _, __: {"jobs": lab.jobs.lines()},
        answers.JobsAnswer,
        waits=False,
    ),
    ApiRoute(
        "GET",
        "/api/jobs/{id}",
        "One job: how far it is, its points, its result",
        lambda lab, _, known: lab.jobs.find(known["id"], int(known["points_from"])),
        answers.JobAnswer,
        refusals=(404, 422),
        parameters=("points_from",),
        waits=False,
    ),
    ApiRoute(
        "POST",
        "/api/jobs/{id}/cancel",
        "Stop a job",
        lambda lab, _, known: lab.jobs.cancel(known["id"]),
        answers.JobAnswer,
        refusals=(404, 409),
        waits=False,
    ),
    ApiRoute(
        "DELETE",
        "/api/jobs/{id}",
        "Forget a job that has ended, with its report",
        _forget,
        answers.Forgotten,
        refusals=(404, 409),
        waits=False,
    ),
    ApiRoute(
        "GET",
        "/reports/{id}",
        "The page of an audit that is done",
        _report,
        None,
        refusals=(404,),
        media="text/html",
        waits=False,
    ),
)


def description(settings: Settings) -> dict[str, Any]:
    """Everything that can be asked, with the schema of each request and answer."""
    adapters: list[tuple[Any, Any, TypeAdapter[Any]]] = [
        ("error", "serialization", TypeAdapter(answers.ErrorAnswer))
    ]
    for route in ROUTES:
        if route.takes is not None:
            adapters.append((f"{route.name} takes", "validation", TypeAdapter(route.takes)))
        if route.returns is not None:
            adapters.append((f"{route.name} returns", "serialization", TypeAdapter(route.returns)))
    schemas, shared = TypeAdapter.json_schemas(adapters, ref_template=REFERENCE)
    paths: dict[str, dict[str, Any]] = {}
    for route in ROUTES:
        known = {
            "takes": schemas.get((f"{route.name} takes", "validation")),
            "returns": schemas.get((f"{route.name} returns", "serialization")),
            "error": schemas["error", "serialization"],
        }
        paths.setdefault(route.path, {})[route.method.lower()] = _operation(route, known, settings)
    components: dict[str, Any] = {"schemas": shared["$defs"]}
    if settings.token is not None:
        components["securitySchemes"] = {"token": {"type": "http", "scheme": "bearer"}}
    return {
        "openapi": "3.1.0",
        "info": {"title": "Attlas", "version": __version__},
        "paths": paths,
        "components": components,
    }


def _operation(route: ApiRoute, schemas: dict[str, Any], settings: Settings) -> dict[str, Any]:
    found = {}
    for status in route.statuses:
        content = {route.media: {"schema": schemas["returns"] or {"type": "string"}}}
        found[str(status)] = {"description": HTTPStatus(status).phrase, "content": content}
    for status in sorted({*route.refusals, *EVERYWHERE}):
        content = {"application/json": {"schema": schemas["error"]}}
        found[str(status)] = {"description": HTTPStatus(status).phrase, "content": content}
    operation: dict[str, Any] = {
        "summary": route.summary,
        "operationId": route.name,
        "responses": found,
    }
    if schemas["takes"] is not None:
        body = {"application/json": {"schema": schemas["takes"]}}
        operation["requestBody"] = {"required": True, "content": body}
    if parameters := _parameters(route):
        operation["parameters"] = parameters
    if settings.token is not None and route.path != "/health":
        operation["security"] = [{"token": []}]
    return operation


def _parameters(route: ApiRoute) -> list[dict[str, Any]]:
    number = {"type": "integer", "minimum": 0, "maximum": 999_999_999}
    asked = [{"name": name, "in": "query", "schema": number} for name in route.parameters]
    if "{id}" in route.path:
        schema = {"type": "string", "maxLength": 100}
        return [{"name": "id", "in": "path", "required": True, "schema": schema}, *asked]
    return asked
