"""The studies there are, by name. What they need is imported when one is run."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import import_module
from inspect import Parameter, signature
from typing import Any

from attlas.errors import UnknownNameError, UsageError
from attlas.registry import Registry


@dataclass(frozen=True)
class Study:
    """A published experiment that can be run again: the function of this name, in its own file."""

    name: str
    about: str
    paper: str

    @property
    def options(self) -> Mapping[str, Any]:
        """Its options with their defaults; those that must be given have `inspect`'s `empty`."""
        return {each.name: each.default for each in signature(self._function).parameters.values()}

    def run(self, options: Mapping[str, Any]) -> Any:
        """Run it; an option that is unknown or missing is an error that names what there is."""
        known = self.options
        for name in options:
            if name not in known:
                raise UnknownNameError(f"option of {self.name}", name, known)
        needed = [name for name, default in known.items() if default is Parameter.empty]
        missing = [name for name in needed if name not in options]
        if missing:
            raise UsageError(f"the study {self.name} needs {' and '.join(missing)}")
        return self._function(**options)

    @property
    def _function(self) -> Callable[..., Any]:
        found: Callable[..., Any] = getattr(import_module(f"attlas.studies.{self.name}"), self.name)
        return found


STUDIES: Registry[Study] = Registry("study")

for _each in (
    Study(
        "attattr",
        "head pruning, effectiveness and triggers on four tasks",
        "Hao et al. 2021, arXiv:2004.11207",
    ),
):
    STUDIES.add(_each.name, _each)


def study(name: str, **options: Any) -> Any:
    """Run a published experiment again, by its name; `list_studies` lists them.

    What it takes and gives is its own: see the function of this name in `attlas.studies`.
    """
    return STUDIES[name].run(options)


def list_studies() -> list[str]:
    """The names of all studies."""
    return STUDIES.names()
