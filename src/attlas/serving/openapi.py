"""The description of the server by OpenAPI 3.1, made from the table of routes."""

from http import HTTPStatus
from typing import Any

from pydantic import TypeAdapter

from attlas.serving.answers import ErrorAnswer
from attlas.serving.routes import EVERYWHERE, ROUTES, ApiRoute
from attlas.serving.settings import Settings
from attlas.version import __version__

REFERENCE = "#/components/schemas/{model}"


def description(settings: Settings) -> dict[str, Any]:
    """Everything that can be asked, with the schema of each request and answer."""
    adapters: list[tuple[Any, Any, TypeAdapter[Any]]] = [
        ("error", "serialization", TypeAdapter(ErrorAnswer))
    ]
    for route in ROUTES:
        if route.takes is not None:
            adapters.append((f"{route.name} takes", "validation", TypeAdapter(route.takes)))
        if route.returns is not None:
            adapters.append((f"{route.name} returns", "serialization", TypeAdapter(route.returns)))
    schemas, shared = TypeAdapter.json_schemas(adapters, ref_template=REFERENCE)
    paths: dict[str, dict[str, Any]] = {}
    for route in ROUTES:
        known = {name: schemas.get((f"{route.name} {name}", mode)) for name, mode in _MODES}
        known["error"] = schemas["error", "serialization"]
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


_MODES = (("takes", "validation"), ("returns", "serialization"))


def _operation(route: ApiRoute, schemas: dict[str, Any], settings: Settings) -> dict[str, Any]:
    answers = {}
    for status in route.statuses:
        content = {route.media: {"schema": schemas["returns"] or {"type": "string"}}}
        answers[str(status)] = {"description": HTTPStatus(status).phrase, "content": content}
    for status in sorted({*route.refusals, *EVERYWHERE}):
        content = {"application/json": {"schema": schemas["error"]}}
        answers[str(status)] = {"description": HTTPStatus(status).phrase, "content": content}
    operation: dict[str, Any] = {
        "summary": route.summary,
        "operationId": route.name,
        "responses": answers,
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
