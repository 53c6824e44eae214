"""The versions that the package asks for can be installed together."""

import tomllib
from importlib.metadata import requires
from pathlib import Path

import pytest
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


ROOT = Path(__file__).parents[1]


@pytest.fixture
def script(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "scripts"))
    import versions

    monkeypatch.setattr(versions, "newest_of", lambda package: "99.0")
    return versions


def test_the_pairs_are_the_oldest_the_pinned_and_the_newest(script):
    own = {each.name: lowest(each) for each in map(Requirement, PROJECT["dependencies"])}
    oldest, pinned, newest = script.pairs()
    assert oldest == (own["torch"], own["transformers"])
    assert newest == ("99.0", "99.0") and oldest != pinned != newest
    lines = (ROOT / "constraints.txt").read_text().splitlines()
    for name, version in zip(("torch", "transformers"), pinned, strict=True):
        assert f"{name}=={version}" in lines


def test_a_new_row_replaces_its_own_and_no_other(script):
    page = f"before\n{script.BEGIN}\n{script.END}\nafter\n"
    first, second = (
        script.Row("1.0", "2.0", "all hold"),
        script.Row("1.0", "3.0", notes=["it fails"]),
    )
    page = script.with_table(page, [first, second])
    page = script.with_table(page, [script.Row("1.0", "2.0", "half hold")])
    assert "| 1.0 | 2.0 | half hold |" in page and "all hold" not in page
    assert page.count("| 1.0 | 3.0 | not run |") == page.count("transformers 3.0: it fails") == 1
    assert page.startswith("before\n") and page.endswith("after\n")
    assert script.with_table(page, []) == page


def test_what_cannot_be_installed_is_one_line_without_an_address(script):
    said = "Looking around\n\nERROR: no such version, see https://example.org/a?b for help\n\n"
    assert script.last_line(said) == "ERROR: no such version, see for help"
