"""The public surface: what is promised is there, and importing it costs next to nothing."""

import re
import subprocess
import sys
from pathlib import Path

import attlas

ROOT = Path(__file__).parents[1]


def run(code):
    return subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
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
    for name in ("method", "measure", "trial", "ranking", "study"):
        assert callable(getattr(attlas.registering, name))
    assert all(getattr(attlas.registering, name) for name in attlas.registering.__all__)


def test_an_unknown_name_is_an_attribute_error():
    assert not hasattr(attlas, "explian")


def test_importing_and_asking_for_help_bring_in_no_torch():
    code = (
        "import sys, attlas\n"
        "from typer.testing import CliRunner\n"
        "from attlas.cli.main import app\n"
        "assert CliRunner().invoke(app, ['--help']).exit_code == 0\n"
        "assert CliRunner().invoke(app, ['explain', '--help']).exit_code == 0\n"
        "assert 'attattr' in attlas.list_studies()\n"
        "assert CliRunner().invoke(app, ['study', '--help']).exit_code == 0\n"
        "print({'torch', 'transformers', 'pandas', 'numpy'} & set(sys.modules))"
    )
    assert run(code).strip() == "set()"


def test_the_marker_of_typed_packages_is_shipped():
    from importlib.resources import files

    assert files("attlas").joinpath("py.typed").is_file()
