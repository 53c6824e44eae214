"""What a study is, and the registry of all of them."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from inspect import Parameter, signature
from typing import Any

from attlas.errors import UnknownNameError, UsageError, check_whole
from attlas.registry import Registry

COUNTS = (int, int | None)  # the types of options that count something
GIVEN_TO_ALL = ("quick", "out", "device", "engine", "watch")  # options of every study, not of one


@dataclass(frozen=True)
class Study:
    """A published experiment that can be run again.

    `quick` holds the options of the quick form, where they differ from the defaults, which are the
    full form. `takes` holds the seconds of the quick form on two cores, and of the full form, the
    sum of its parts on the machine that its kept result names; 0 if it has not been timed.
    """

    name: str
    function: Callable[..., Any]
    about: str  # one line
    question: str
    paper: str
    quick: Mapping[str, Any] = field(default_factory=dict)
    takes: tuple[float | int, float | int] = (0, 0)

    def __post_init__(self) -> None:
        for name in self.options:
            if name in GIVEN_TO_ALL:
                raise UsageError(f"the study {self.name} cannot have an option {name!r} of its own")
        for name in self.quick:
            if name not in self.options:
                raise UnknownNameError(f"option of {self.name}", name, self.options)

    @property
    def options(self) -> Mapping[str, Any]:
        """Its options with their defaults; those without a default have `inspect`'s `empty`."""
        parameters = signature(self.function).parameters.values()
        return {each.name: each.default for each in parameters if _is_option(each)}

    def settings(self, given: Mapping[str, Any], *, quick: bool) -> dict[str, Any]:
        """All options: those given, else those of the form; a wrong or missing one is refused."""
        known = self.options
        for name in given:
            if name not in known:
                raise UnknownNameError(f"option of {self.name}", name, [*known, *GIVEN_TO_ALL])
        chosen = {**known, **(self.quick if quick else {}), **given}
        missing = [name for name, value in chosen.items() if value is Parameter.empty]
        if missing:
            raise UsageError(f"the study {self.name} needs {' and '.join(missing)}")
        self._check_counts(chosen)
        return chosen

    def _check_counts(self, chosen: Mapping[str, Any]) -> None:
        """Refuse a count that is no whole number; zero only where a form of the study has it."""
        for name, each in signature(self.function).parameters.items():
            if name not in chosen or each.annotation not in COUNTS:
                continue
            if chosen[name] is not None or each.annotation is int:
                is_zero_known = 0 in (each.default, self.quick.get(name))
                check_whole(name, chosen[name], 0 if is_zero_known else 1)


def _is_option(parameter: Parameter) -> bool:
    return parameter.kind is Parameter.KEYWORD_ONLY


STUDIES = Registry("study", Study, group="attlas.studies", package="attlas.studies")
study = STUDIES.register
