"""The example package, installed beside Attlas: every verb and every process finds its parts."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import attlas

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "examples" / "attlas_example_parts"
USE = """
import contextlib, io, json, sys, warnings
import attlas
from attlas.cli.main import main
sys.argv, told = ["attlas", "methods", "--json"], io.StringIO()
with contextlib.redirect_stdout(told), contextlib.suppress(SystemExit):
    main()  # the first to look for parts: what cannot be used is said here
warnings.simplefilter("error")
listed = [each["name"] for each in json.loads(told.getvalue())]
assert "received_attention" in listed and "raw_attention" in listed
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


@pytest.fixture(scope="module")
def beside_a_broken_one(installed, tmp_path_factory):
    """The same environment, with another package that cannot be imported."""
    folder = tmp_path_factory.mktemp("broken")
    info = folder / "broken_parts-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: broken-parts\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[attlas.methods]\nlost = broken_parts:lost\n")
    return {**installed, "PYTHONPATH": f"{folder}{os.pathsep}{installed['PYTHONPATH']}"}


def test_every_verb_and_the_command_line_find_its_parts_beside_a_package_that_cannot_be_imported(
    beside_a_broken_one,
):
    done = run("-c", USE, env=beside_a_broken_one)
    (line,) = [line for line in done.stderr.splitlines() if "offers the" in line]
    assert "the package broken-parts offers the method 'lost', which cannot be used" in line


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
