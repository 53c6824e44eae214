"""The table of everything that can be asked of the server: one row makes a route and its description."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from pydantic import TypeAdapter

from attlas.serving import answers, requests
from attlas.serving.laboratory import Laboratory
from attlas.serving.work.explaining import answer_compare, answer_explain
from attlas.serving.work.intervening import answer_intervene
from attlas.version import __version__

ASKING = (400, 404, 413, 415, 422, 429, 503)  # what may go wrong where a body is sent
EVERYWHERE = (401, 403, 421)


@dataclass(frozen=True)
class ApiRoute:
    """One thing to ask: how, what it takes, what it answers, and what may go wrong.

    `answer` gets the laboratory, the checked body (or None) and the parameters. Where it `waits`
    it asks a model, and runs in a thread.
    """

    method: str
    path: str
    summary: str
    answer: Callable[[Laboratory, Any, dict[str, str]], Any]
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
    def adapter(self) -> TypeAdapter[Any] | None:
        """What checks the body."""
        return None if self.takes is None else TypeAdapter(self.takes)


def _health(lab: Laboratory, _: None, __: dict[str, str]) -> dict[str, Any]:
    return {
        "status": "ok",
        "version": __version__,
        "models": len(lab.shelf.entries),
        **lab.jobs.counts(),
    }


ROUTES = (
    ApiRoute("GET", "/health", "Whether it serves", _health, answers.Health, waits=False),
    ApiRoute(
        "GET",
        "/api/models",
        "The models, methods, rankings, removals and limits",
        lambda lab, _, __: lab.shelf.described(lab.settings.limits),
        answers.Everything,
        refusals=(429, 503),
    ),
    ApiRoute(
        "POST",
        "/api/explain",
        "The prediction, and the scores of a method",
        lambda lab, given, _: answer_explain(lab.shelf, given),
        answers.ExplainAnswer,
        requests.Explaining,
        ASKING,
    ),
    ApiRoute(
        "POST",
        "/api/compare",
        "Two to four explanations side by side",
        lambda lab, given, _: answer_compare(lab.shelf, given),
        answers.CompareAnswer,
        requests.Comparing,
        ASKING,
    ),
    ApiRoute(
        "POST",
        "/api/intervene",
        "The prediction before and after edits of the attention",
        lambda lab, given, _: answer_intervene(lab.shelf, given),
        answers.InterveneAnswer,
        requests.Intervening,
        ASKING,
    ),
)
