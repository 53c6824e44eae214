"""What can be wrong with a request, each with the status that answers it."""

from typing import Any

from pydantic import ValidationError

from attlas.errors import (
    AttlasError,
    TextTooLongError,
    UnknownNameError,
    UsageError,
    in_short,
    is_shortage,
)


class Refused(Exception):
    """A request that is not answered: the status, the kind of the error, and what to tell."""

    def __init__(self, status: int, kind: str, says: str, where: str | None = None) -> None:
        super().__init__(says)
        self.status, self.kind, self.where = status, kind, where
        self.says = in_short(" ".join(says.split()), 1000)

    def to_dict(self) -> dict[str, Any]:
        """The error as JSON."""
        return {"error": {"kind": self.kind, "says": self.says, "where": self.where}}


class NoSuchThing(Refused):
    """There is no page, model, job or report of this name."""

    def __init__(self, says: str) -> None:
        super().__init__(404, "not found", says)


def refusal_of(problem: BaseException) -> Refused | None:
    """What a request is answered if it fails in this way; None if that was not foreseen."""
    if isinstance(problem, Refused):
        return problem
    if isinstance(problem, ValidationError):
        return _invalid(problem)
    if isinstance(problem, UnknownNameError):
        return Refused(422, "unknown name", str(problem), problem.kind)
    if isinstance(problem, TextTooLongError):
        return Refused(422, "too long", str(problem))
    if isinstance(problem, UsageError):
        return Refused(422, "invalid", str(problem))
    if isinstance(problem, AttlasError):
        return Refused(422, "model", str(problem))
    if is_shortage(problem):
        return Refused(503, "memory", "there is not enough memory for this request")
    return None


def _invalid(problem: ValidationError) -> Refused:
    """The first field that is wrong; a body that is no JSON at all has no fields."""
    first = problem.errors(include_url=False, include_input=False, include_context=False)[0]
    if first["type"] == "json_invalid":
        return Refused(400, "bad request", first["msg"])
    where = ".".join(str(each) for each in first["loc"])
    return Refused(422, "invalid", f"{where or 'the body'}: {first['msg']}", where or None)
