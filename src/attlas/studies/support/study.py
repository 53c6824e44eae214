"""What a study is, and the registry of all of them."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from inspect import Parameter, signature
from typing import Any

from attlas.errors import UnknownNameError, UsageError
from attlas.registry import Registry


@dataclass(frozen=True)
class Study:
    """A published experiment that can be run again."""

    name: str
    function: Callable[..., Any]
    about: str
    paper: str

    @property
    def options(self) -> Mapping[str, Any]:
        """Its options with their defaults; those without a default have `inspect`'s `empty`."""
        return {each.name: each.default for each in signature(self.function).parameters.values()}

    def run(self, options: Mapping[str, Any]) -> Any:
        """Run it; an unknown or missing option is an error that names what is allowed."""
        known = self.options
        for name in options:
            if name not in known:
                raise UnknownNameError(f"option of {self.name}", name, known)
        needed = [name for name, default in known.items() if default is Parameter.empty]
        missing = [name for name in needed if name not in options]
        if missing:
            raise UsageError(f"the study {self.name} needs {' and '.join(missing)}")
        return self.function(**options)


STUDIES = Registry("study", Study, group="attlas.studies", package="attlas.studies")
study = STUDIES.register
