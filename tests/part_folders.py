"""Checks of a folder of registered parts: one part in each file, with a test and a page."""

import inspect
from importlib import import_module
from pathlib import Path

import attlas

ROOT = Path(__file__).parents[1]
HOUSE = Path(attlas.__file__).parent


def missing_files(registry):
    """What is missing for a registry's folder, or should not be there."""
    room = registry.group.removeprefix("attlas.")
    files = {path.stem for path in (HOUSE / room).glob("*.py")} - {"__init__"}
    for name in sorted(files):
        registered = [each for each in _functions(registry) if each.__module__.endswith(f".{name}")]
        if [each.__name__ for each in registered] != [name]:
            yield f"src/attlas/{room}/{name}.py must register one function, named {name}"
    for name in sorted(files | set(registry.built_in)):
        for path in (
            f"src/attlas/{room}/{name}.py",
            f"tests/{room}/test_{name}.py",
            f"docs/{room}/{name}.md",
        ):
            if not (ROOT / path).is_file():
                yield f"{path} is missing"
            elif "TODO" in (ROOT / path).read_text(encoding="utf-8"):
                yield f"{path} has a TODO"


def pages_without_a_part(registry):
    """Pages of parts that no longer exist."""
    room = registry.group.removeprefix("attlas.")
    pages = {path.stem for path in (ROOT / "docs" / room).glob("*.md")} - {"README"}
    return sorted(pages - set(registry.built_in))


def check_files(registry):
    """Fail with a line for each file that is missing, unfinished or of no part."""
    room = registry.group.removeprefix("attlas.")
    left = [f"docs/{room}/{name}.md is of no part" for name in pages_without_a_part(registry)]
    problems = [*missing_files(registry), *left]
    assert not problems, "\n" + "\n".join(problems)


def _functions(registry):
    for name in registry.built_in:
        import_module(f"{registry.group}.{name}")
    return [each for each in registry._functions.values() if inspect.isfunction(each)]
