"""The public surface: what is promised is there, and importing it costs next to nothing."""

import json
import re
import subprocess
import sys
from pathlib import Path

import attlas
from attlas.heads.rankings import RANKINGS
from attlas.measures import MEASURES
from attlas.methods import METHODS
from attlas.objectives import OBJECTIVES
from attlas.studies import STUDIES
from attlas.trials import TRIALS

ROOT = Path(__file__).parents[1]


def run(code, **given):
    return subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, **given
    ).stdout


def test_every_public_name_is_there_and_listed():
    assert sorted(attlas.__all__) == sorted({*attlas._HOMES, "__version__"})
    for name in attlas.__all__:
        assert getattr(attlas, name) is not None
    assert dir(attlas) == attlas.__all__


def test_every_public_name_is_on_the_page_of_public_names():
    page = (ROOT / "docs" / "api.md").read_text()
    named = set(re.findall(r"`(\w+)`", "".join(re.findall(r"^\| ([^|]*) \|", page, re.M))))
    assert named == set(attlas.__all__)


def test_decorators_and_what_parts_take_are_in_one_module():
    for name in ("method", "measure", "trial", "objective", "ranking", "study"):
        assert callable(getattr(attlas.registering, name))
    assert all(getattr(attlas.registering, name) for name in attlas.registering.__all__)


def test_an_unknown_name_is_an_attribute_error():
    assert not hasattr(attlas, "explian")


LISTS = """
import json, sys
import attlas
kinds = "methods", "measures", "trials", "objectives", "rankings", "studies"
names = {kind: getattr(attlas, f"list_{kind}")() for kind in kinds}
from typer.testing import CliRunner
from attlas.cli.main import COMMANDS, commands
for asked in (["--help"], ["methods"], ["models"], *([each, "--help"] for each in COMMANDS)):
    assert CliRunner().invoke(commands(), asked).exit_code == 0, asked
heavy = {"torch", "transformers", "scipy", "numpy", "pandas", "tokenizers", "PIL"}
print(json.dumps([names, sorted(heavy & set(sys.modules))]))
"""
EXPLAINED = """
import runpy, sys
sys.argv = ["attlas", "explain", "-"]
try:
    runpy.run_module("attlas", run_name="__main__")
except SystemExit as stopped:
    assert not stopped.code
rooms = ("heads", "judging", "measures", "scoring", "trials", "auditing.settings", "checking")
unused = {"pandas", "pyarrow", "scipy.stats", "matplotlib", "networkx", "datasets"}
print(sorted((unused | {f"attlas.{room}" for room in rooms}) & set(sys.modules)))
"""


def test_lists_and_help_bring_in_nothing_heavy_and_say_what_the_registries_say():
    names, heavy = json.loads(run(LISTS))
    registries = {
        "methods": METHODS,
        "measures": MEASURES,
        "trials": TRIALS,
        "objectives": OBJECTIVES,
        "rankings": RANKINGS,
        "studies": STUDIES,
    }
    assert heavy == []
    assert names == {kind: registry.names() for kind, registry in registries.items()}


def test_an_explanation_of_standard_input_brings_in_only_what_it_uses():
    *shown, last = run(EXPLAINED, input="a warm and funny film\n").splitlines()
    assert any("funny" in line for line in shown) and last == "[]"


def test_the_marker_of_typed_packages_is_shipped():
    from importlib.resources import files

    assert files("attlas").joinpath("py.typed").is_file()
