"""Registries: what can be registered and found, and what installed packages add to them."""

import sys
import warnings
from dataclasses import dataclass
from importlib.metadata import EntryPoint
from types import ModuleType

import jaxtyping
import pytest

import attlas
from attlas import registry as module
from attlas.errors import UnknownNameError, UsageError
from attlas.heads.rankings import RANKINGS
from attlas.measures import MEASURES
from attlas.methods import METHODS
from attlas.registry import Registry
from attlas.studies import STUDIES
from attlas.trials import TRIALS

KINDS = (METHODS, MEASURES, TRIALS, RANKINGS, STUDIES)
every_registry = pytest.mark.parametrize("registry", KINDS, ids=lambda each: each.kind)


@dataclass(frozen=True)
class Tool:
    name: str
    function: object
    use: str


def function_of(name, home="elsewhere"):
    """A function as it would be if it were written in the module `home`."""

    def function():
        return name

    function.__name__, function.__module__ = name, home
    return function


@pytest.fixture
def tools():
    return Registry("tool", Tool, group="attlas.tools")


def test_a_function_is_registered_under_its_own_name(tools):
    file, saw = function_of("flat_file"), function_of("saw")
    assert tools.register(use="smoothing")(file) is file
    tools.register(use="cutting")(saw)
    assert tools["flat-file"] == tools["flat_file"] == Tool("flat_file", file, "smoothing")
    assert tools.names() == ["flat_file", "saw"] == [each.name for each in tools]
    assert len(tools) == 2


def test_a_name_is_registered_once(tools):
    tools.register(use="cutting")(function_of("saw", "one_package"))
    with pytest.raises(UsageError, match="the tool 'saw' is registered already, by one_package"):
        tools.register(use="cutting")(function_of("saw", "other_package"))
    with pytest.raises(UsageError, match="registered already"):
        tools.register(use="cutting")(function_of("saw", "one_package"))


def test_a_notebook_may_define_a_part_again(tools):
    for use in ("cutting", "music"):
        tools.register(use=use)(function_of("saw", "__main__"))
    assert tools["saw"].use == "music"


def test_a_name_of_attlas_is_taken_even_before_it_is_imported():
    studies = Registry("study", Tool, group="attlas.studies", package="attlas.studies")
    message = "the study 'attattr' is registered already, by attlas.studies.attattr"
    with pytest.raises(UsageError, match=message):
        studies.register(use="")(function_of("attattr"))


def test_a_part_is_named_like_its_file():
    with pytest.raises(UsageError, match="alti registers 'other': a method is named like its file"):
        METHODS.register()(function_of("other", "attlas.methods.alti"))


def test_a_file_that_registers_nothing_is_told_what_it_needs():
    studies = Registry("study", Tool, group="attlas.none", package="attlas.studies")
    message = "attlas.studies.attattr needs a function attattr under @study"
    with pytest.raises(UsageError, match=message):
        studies["attattr"]


@pytest.fixture
def unchecked(monkeypatch):
    """Types are not checked, as outside of tests."""
    monkeypatch.setattr(jaxtyping.config, "jaxtyping_disable", True)


@pytest.mark.parametrize("thing", [lambda: 1, None, 3], ids=["lambda", "None", "3"])
def test_what_has_no_name_cannot_be_registered(tools, thing, unchecked):
    with pytest.raises(UsageError, match="a tool is a function with a name of its own, not"):
        tools.register(use="")(thing)


def test_fields_that_are_missing_or_unknown_are_named(tools):
    with pytest.raises(UsageError, match=r"the tool 'saw': .*'use'"):
        tools.register()(function_of("saw"))
    with pytest.raises(UsageError, match=r"the tool 'saw': .*'colour'"):
        tools.register(use="", colour="red")(function_of("saw"))


@pytest.mark.parametrize(
    ("field", "message"),
    [
        ({"family": "X"}, "unknown family 'X': allowed: W, V, P, reference"),
        ({"of": "logits"}, "unknown quantity 'logits': did you mean 'logit'"),
        ({"maps": "site"}, "unknown kind of maps 'site': did you mean 'sites'"),
        ({"needs": ("attentions",)}, "unknown need of a method 'attentions'"),
        ({"cost": "free"}, "unknown cost 'free'"),
    ],
)
def test_a_record_that_cannot_be_is_refused(field, message):
    record = {"family": "W", "signed": False, "of": None, "paper": "", "reading": "None.", **field}
    with pytest.raises(UsageError, match=message):
        METHODS.register(**record)(function_of("impossible"))
    assert "impossible" not in METHODS.names()


@every_registry
def test_an_unknown_name_is_an_error_with_the_nearest(registry):
    name = registry.names()[0]
    with pytest.raises(UnknownNameError) as caught:
        registry[f"{name}x"]
    assert f"unknown {registry.kind} '{name}x': did you mean '{name}'" in str(caught.value)


@every_registry
@pytest.mark.parametrize("name", [None, 3, ["alti"], object], ids=str)
def test_what_is_no_name_is_a_usage_error(registry, name, unchecked):
    with pytest.raises(UsageError, match=f"a {registry.kind} is given by its name, a string, not"):
        registry[name]


def test_verbs_say_so_in_one_line(unchecked):
    subject = attlas.load()
    with pytest.raises(UsageError, match="a method is given by its name, a string, not 3"):
        attlas.explain(subject, "a great film", method=3)
    explanation = attlas.explain(subject, "a great film", "raw_attention")
    with pytest.raises(UsageError, match=r"measures takes a name or a list of names, not \[None\]"):
        attlas.judge(subject, explanation, measures=[None])


# Installed packages


class Distribution:
    def __init__(self, name):
        self.name = name


class Offered(EntryPoint):
    """An entry point of a package, with what importing its module does."""

    def __init__(self, name, package, load):
        super().__init__(name, f"{package}.parts:{name}", "attlas.tools")
        vars(self).update(dist=Distribution(package), load=load)


def offer(monkeypatch, *entries):
    monkeypatch.setattr(module, "entry_points", lambda group: list(entries))


def registering(tools, name, package):
    def load():
        return tools.register(use="outside")(function_of(name, f"{package}.parts"))

    return Offered(name, package, load)


def failing(name, package, error):
    def load():
        raise error

    return Offered(name, package, load)


def test_parts_of_installed_packages_are_found(tools, monkeypatch):
    tools.register(use="cutting")(function_of("saw"))
    offer(monkeypatch, registering(tools, "pliers", "late"), registering(tools, "file", "early"))
    assert tools.names() == ["saw", "file", "pliers"]
    assert tools["pliers"].use == "outside"


def test_they_are_not_loaded_for_a_part_that_is_there(tools, monkeypatch):
    tools.register(use="cutting")(function_of("saw"))
    offer(monkeypatch, failing("pliers", "late", AssertionError("loaded")))
    assert tools["saw"].use == "cutting"


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (ImportError("no module named nails"), "ImportError: no module named nails"),
        (ZeroDivisionError("oh"), "ZeroDivisionError: oh"),
        (UsageError("a tool is a function"), "a tool is a function"),
    ],
)
def test_a_broken_package_is_named_once_and_breaks_nothing_else(tools, monkeypatch, error, reason):
    tools.register(use="cutting")(function_of("saw"))
    offer(monkeypatch, failing("hammer", "toolbox", error), registering(tools, "pliers", "other"))
    message = f"the package toolbox offers the tool 'hammer', which cannot be used: {reason}"
    with pytest.warns(UserWarning) as told:
        assert tools.names() == ["saw", "pliers"]
    assert [str(each.message) for each in told] == [message]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert tools.names() == ["saw", "pliers"]
    with pytest.raises(UsageError, match=message):
        tools["hammer"]


def test_what_fails_half_way_leaves_nothing_behind(tools, monkeypatch):
    def load():
        tools.register(use="outside")(function_of("hammer"))
        raise RuntimeError("half way")

    offer(monkeypatch, Offered("hammer", "toolbox", load))
    with pytest.warns(UserWarning, match="half way"):
        assert tools.names() == []


def test_the_name_of_a_part_of_attlas_is_refused(monkeypatch):
    home = ModuleType("home")
    home.__path__ = [str(module.__file__).replace("registry.py", "studies")]
    monkeypatch.setitem(sys.modules, "home", home)
    tools = Registry("tool", Tool, group="attlas.tools", package="home")
    offer(monkeypatch, registering(tools, "attattr", "thief"))
    with pytest.warns(UserWarning, match="package thief .* Attlas has a tool of this name"):
        assert "attattr" in tools.names()


def test_of_two_packages_with_one_name_the_second_is_refused(tools, monkeypatch):
    offer(monkeypatch, registering(tools, "saw", "first"), registering(tools, "saw", "second"))
    with pytest.warns(UserWarning, match=r"package second .* registered already, by first\.parts"):
        assert tools.names() == ["saw"]
    assert tools["saw"].function.__module__ == "first.parts"


def test_an_entry_point_has_the_name_of_its_function(tools, monkeypatch):
    entry = registering(tools, "saw", "toolbox")
    offer(monkeypatch, Offered("hacksaw", "toolbox", entry.load))
    message = r"package toolbox .* 'hacksaw'.* is not registered under this name"
    with pytest.warns(UserWarning, match=message):
        assert tools.names() == []


def test_a_package_that_was_imported_before_is_no_clash(tools, monkeypatch):
    entry = registering(tools, "saw", "toolbox")
    function = entry.load()
    offer(monkeypatch, Offered("saw", "toolbox", lambda: function))
    assert tools.names() == ["saw"]
