"""The example package, installed beside Attlas: every verb and every process finds its parts."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import attlas

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "examples" / "attlas_example_parts"
USE = """
import warnings
warnings.simplefilter("error")
import attlas
subject = attlas.load()
found = attlas.explain(subject, "a great film", "received-attention")
assert found.scores.shape == (len(found.tokens),) and abs(found.scores.sum() - 1) < 1e-5
assert "received_attention" in attlas.list_methods()
assert "top_token_drop" in attlas.list_measures()
assert attlas.list_trials()[-1] == "flat_attention"
judged = attlas.judge(subject, found, "top_token_drop")
assert set(judged.to_pandas()["measure"]) == {"top_token_drop"}
"""
TEXTS = ["a great film", "a dull film", "not good at all", "I loved it", "bad", "so very boring"]


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    """The environment of a process that sees the installed package."""
    folder = tmp_path_factory.mktemp("installed")
    source = tmp_path_factory.mktemp("source") / "package"
    subprocess.run(["cp", "-r", PACKAGE, source], check=True)
    pip = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check", "install"]
    offline = ["--no-index", "--no-deps", "--no-build-isolation", "--target", folder]
    subprocess.run([*pip, *offline, source], check=True)
    house = Path(attlas.__file__).parents[1]
    return {**os.environ, "PYTHONPATH": f"{folder}{os.pathsep}{house}", "HF_HUB_OFFLINE": "1"}


def run(*arguments, env):
    done = subprocess.run(
        [sys.executable, *map(str, arguments)], env=env, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return done


def test_its_parts_are_found_by_every_verb(installed):
    run("-c", USE, env=installed)


def test_the_command_line_lists_its_method(installed):
    done = run("-m", "attlas", "methods", "--json", env=installed)
    assert "received_attention" in [each["name"] for each in json.loads(done.stdout)]
    assert re.fullmatch(r"(attlas:[ .]+\n)?", done.stderr)  # it takes some seconds, and says so


@pytest.mark.slow
def test_the_processes_of_an_audit_use_them(installed, tmp_path):
    data = tmp_path / "texts.csv"
    data.write_text("text\n" + "\n".join(TEXTS) + "\n")
    asked = ["--method", "received_attention", "--method", "raw_attention"]
    asked += ["--measure", "top_token_drop", "--measure", "comprehensiveness"]
    asked += ["--trial", "flat_attention", "--data", data, "--out", tmp_path / "audit", "--json"]
    done = run("-m", "attlas", "audit", "--quick", "--workers", 2, *asked, env=installed)
    report = attlas.Report.from_dict(json.loads(done.stdout))
    table = report.to_pandas()
    assert "received_attention" in set(table["method"])
    assert "top_token_drop" in set(table["measure"])
    assert [each.name for each in report.trials] == ["flat_attention"]
    assert "ended early" not in done.stderr


def test_a_package_that_cannot_be_imported_is_named_and_the_rest_works(tmp_path):
    info = tmp_path / "broken_parts-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: broken-parts\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[attlas.methods]\nlost = broken_parts:lost\n")
    house = Path(attlas.__file__).parents[1]
    env = {**os.environ, "PYTHONPATH": f"{tmp_path}{os.pathsep}{house}", "HF_HUB_OFFLINE": "1"}
    done = run("-m", "attlas", "methods", env=env)
    assert "raw_attention" in done.stdout
    assert done.stderr.count("the package broken-parts offers the method 'lost', which cannot") == 1
