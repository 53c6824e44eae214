"""The versions that the package asks for can be installed together."""

import tomllib
from importlib.metadata import requires
from pathlib import Path

from packaging.requirements import Requirement

PROJECT = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text())["project"]


def lowest(requirement):
    (version,) = (each.version for each in requirement.specifier if each.operator == ">=")
    return version


def test_the_lowest_versions_are_not_refused_by_those_they_stand_beside():
    own = {each.name: each for each in map(Requirement, PROJECT["dependencies"])}
    for name in own:
        for other in map(Requirement, requires(name) or ()):
            if other.name in own and other.marker is None:
                least = lowest(own[other.name])
                assert other.specifier.contains(least), f"{name} takes {other}, not {least}"
