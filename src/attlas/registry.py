"""Registries: parts of one kind by name, from Attlas itself and from installed packages."""

import sys
import warnings
from collections.abc import Callable, Collection, Iterable, Iterator
from functools import cached_property
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from pkgutil import iter_modules
from threading import RLock
from typing import Any, Generic, TypeVar

from attlas.errors import UnknownNameError, UsageError

Part = TypeVar("Part")
Function = TypeVar("Function", bound=Callable[..., Any])


def check_known(what: str, names: Iterable[str], known: Collection[str]) -> None:
    """Refuse a name in a part's record that is not among the known ones."""
    for name in names:
        if name not in known:
            raise UnknownNameError(what, name, known)


class Registry(Generic[Part]):
    """Parts of one kind, by the name that is also their file, function and command-line word.

    Every module directly in `package` holds one part of its own name, which is imported when it is
    first asked for. Installed packages add parts by entry points of the group `group`, which are
    loaded at the first look at all parts, or for a name that Attlas does not know.
    """

    def __init__(
        self, kind: str, record: Callable[..., Part], group: str, package: str | None = None
    ) -> None:
        self.kind = kind
        self.group = group
        self._record = record
        self._package = package
        self._parts: dict[str, Part] = {}
        self._functions: dict[str, Callable[..., Any]] = {}
        self._refused: dict[str, str] = {}  # why an entry point's part cannot be used, by name
        self._searched = False
        self._lock = RLock()

    @cached_property
    def built_in(self) -> tuple[str, ...]:
        """The names of the parts in `package`, in alphabetical order."""
        if self._package is None:
            return ()
        modules = iter_modules(sys.modules[self._package].__path__)
        return tuple(sorted(each.name for each in modules if not each.ispkg))

    def register(self, **record: Any) -> Callable[[Function], Function]:
        """Make a decorator that registers a function under its own name.

        `record` holds the other fields of the kind's record.
        """

        def add(function: Function) -> Function:
            name = self._free_name(function)
            try:
                part = self._record(name, function, **record)
            except TypeError as problem:
                raise UsageError(f"the {self.kind} {name!r}: {problem}") from problem
            self._parts[name], self._functions[name] = part, function
            return function

        return add

    def __getitem__(self, name: str) -> Part:
        """Return a part; hyphens and underscores are the same."""
        if not isinstance(name, str):
            raise UsageError(f"a {self.kind} is given by its name, a string, not {name!r}")
        key = name.replace("-", "_")
        if key not in self._parts:
            if key in self.built_in:
                import_module(f"{self._package}.{key}")
            else:
                self._load_installed()
        if key in self._parts:
            return self._parts[key]
        if key in self._refused:
            raise UsageError(self._refused[key])
        if key in self.built_in:
            raise UsageError(f"{self._package}.{key} needs a function {key} under @{self.kind}")
        raise UnknownNameError(self.kind, name, self.names())

    def __iter__(self) -> Iterator[Part]:
        return (self[name] for name in self.names())

    def __len__(self) -> int:
        return len(self.names())

    def names(self) -> list[str]:
        """All names: those of Attlas in alphabetical order, then those that others registered."""
        self._load_installed()
        return [*self.built_in, *(name for name in self._parts if name not in self.built_in)]

    def _free_name(self, function: Callable[..., Any]) -> str:
        """The function's name, if a part may be registered under it."""
        name: str = getattr(function, "__name__", "")
        if not name.isidentifier():
            raise UsageError(f"a {self.kind} is a function with a name of its own, not {function}")
        module = function.__module__
        package, _, file = module.rpartition(".")
        if package == self._package and file != name:
            raise UsageError(f"{module} registers {name!r}: a {self.kind} is named like its file")
        owner = self._owner(name)
        taken = owner is not None and (owner != module or name in self._parts)
        if taken and not owner == module == "__main__":  # a notebook may run a cell again
            raise UsageError(f"the {self.kind} {name!r} is registered already, by {owner}")
        return name

    def _owner(self, name: str) -> str | None:
        """The module that a name belongs to."""
        if name in self.built_in:
            return f"{self._package}.{name}"
        return self._functions[name].__module__ if name in self._functions else None

    def _load_installed(self) -> None:
        """Load the parts of installed packages, once; what cannot be used is one warning each."""
        with self._lock:
            if self._searched:
                return
            self._searched = True  # before loading: what is loaded may look at this registry
            for entry in sorted(entry_points(group=self.group), key=lambda each: each.name):
                self._try(entry)
        for message in self._refused.values():
            warnings.warn(message, stacklevel=3)

    def _try(self, entry: EntryPoint) -> None:
        before = set(self._parts)
        try:
            self._load(entry)
        except Exception as problem:  # another's code may raise anything; the other parts go on
            for name in set(self._parts) - before:
                del self._parts[name], self._functions[name]
            known = isinstance(problem, UsageError)
            reason = str(problem) if known else f"{type(problem).__name__}: {problem}"
            package = entry.dist.name if entry.dist else entry.module
            offers = f"the package {package} offers the {self.kind} {entry.name!r}"
            self._refused[entry.name] = f"{offers}, which cannot be used: {reason}"

    def _load(self, entry: EntryPoint) -> None:
        if entry.name in self.built_in:
            raise UsageError(f"Attlas has a {self.kind} of this name")
        function = entry.load()
        if self._functions.get(entry.name) is not function:
            raise UsageError(f"{entry.value} is not registered under this name")
