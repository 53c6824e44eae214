"""CONTRIBUTING.md: its examples run, its scaffold writes all files, its lists are up to date."""

import importlib.util
import os
import re
from importlib import import_module
from pathlib import Path
from textwrap import dedent

import pytest
from measures import test_contract as measures_owe
from methods import test_contract as methods_owe
from part_folders import missing_files
from subjects import LABELLED
from trials import test_contract as trials_owe

from attlas.measures import MEASURES
from attlas.methods import METHODS
from attlas.objectives import OBJECTIVES
from attlas.studies import STUDIES
from attlas.trials import TRIALS

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
EXAMPLES = ROOT / "examples" / "attlas_example_parts" / "src" / "attlas_example_parts"
REGISTRIES = {
    "method": METHODS,
    "measure": MEASURES,
    "trial": TRIALS,
    "objective": OBJECTIVES,
    "study": STUDIES,
}
NAMES = {"method": "received_attention", "measure": "top_token_drop", "trial": "flat_attention"}


def example(path):
    """The code on the page that begins with this path."""
    blocks = [dedent(each) for each in re.findall(r"^ *```python\n(.*?)^ *```", PAGE, re.S | re.M)]
    (code,) = [each for each in blocks if each.startswith(f"# {path}\n")]
    return code


@pytest.fixture(params=NAMES)
def added(request, tmp_path, monkeypatch):
    """A part of the page, in a folder that belongs to its room for as long as a test runs."""
    kind = request.param
    registry, name = REGISTRIES[kind], NAMES[kind]
    room = import_module(registry.group)
    (tmp_path / f"{name}.py").write_text(example(f"src/attlas/{_room(kind)}/{name}.py"))
    monkeypatch.setattr(room, "__path__", [*room.__path__, str(tmp_path)])
    vars(registry).pop("built_in", None)
    yield kind, name
    monkeypatch.undo()
    registry._parts.pop(name, None)
    registry._functions.pop(name, None)
    vars(registry).pop("built_in", None)


def _room(kind):
    return REGISTRIES[kind].group.removeprefix("attlas.")


def test_an_example_passes_its_own_test_and_the_contract(added):
    kind, name = added
    assert name in REGISTRIES[kind].names()
    space = {}
    exec(example(f"tests/{_room(kind)}/test_{name}.py"), space)
    tests = [each for word, each in space.items() if word.startswith("test_")]
    assert tests
    for each in tests:
        each()
    CONTRACTS[kind](name)
    missing = list(missing_files(REGISTRIES[kind]))
    assert f"docs/{_room(kind)}/{name}.md is missing" in missing


def method_contract(name):
    for task in [*LABELLED, "causal lm", "sequence to sequence"]:
        methods_owe.test_gives_one_finite_score_for_each_token(task, name)
        methods_owe.test_a_batch_gives_what_each_text_gives_alone(task, name)
    methods_owe.test_the_record_says_what_it_needs_and_gives(name)


def measure_contract(name):
    measures_owe.test_its_record_is_whole(name)
    measures_owe.test_it_gives_a_finite_figure(name)
    measures_owe.test_a_text_of_one_token_cannot_be_judged(name)
    measures_owe.test_the_same_case_has_the_same_figure(name)


def trial_contract(name):
    trials_owe.test_what_its_reader_must_know_is_there(name)
    trials_owe.test_it_leaves_the_model_as_it_was(name)
    trials_owe.test_figures_are_of_each_text(name)
    trials_owe.test_the_same_seed_finds_the_same(name)


CONTRACTS = {"method": method_contract, "measure": measure_contract, "trial": trial_contract}


@pytest.mark.parametrize("kind", NAMES)
def test_the_example_package_has_the_same_parts(kind):
    name = NAMES[kind]
    page = example(f"src/attlas/{_room(kind)}/{name}.py").partition("\n\n\n")[2]
    assert (EXAMPLES / f"{name}.py").read_text().partition("\n\n\n")[2] == page


# The scaffold


@pytest.fixture
def scaffold(tmp_path, monkeypatch):
    spec = importlib.util.spec_from_file_location("new_part", ROOT / "scripts" / "new_part.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    yield module


@pytest.mark.parametrize("kind", REGISTRIES)
def test_the_scaffold_writes_the_three_files(kind, scaffold, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(scaffold, "ROOT", tmp_path)
    room = _room(kind)
    paths = [f"src/attlas/{room}/new.py", f"tests/{room}/test_new.py", f"docs/{room}/new.md"]
    for path in paths:
        (tmp_path / path).parent.mkdir(parents=True)
    scaffold.main([kind, "new"])
    assert capsys.readouterr().out.split() == paths
    for path in paths:
        assert "TODO" in (tmp_path / path).read_text()
    compile((tmp_path / paths[0]).read_text(), paths[0], "exec")
    with pytest.raises(SystemExit, match="is there already"):
        scaffold.main([kind, "new"])
    with pytest.raises(SystemExit, match="lower-case words"):
        scaffold.main([kind, "New-Part"])


def test_the_scaffold_writes_decorators_that_register(scaffold):
    for kind, source in scaffold.SOURCES.items():
        name = f"scaffolded_{kind}"
        code = source.format(name=name)
        if kind in ("method", "measure", "trial"):
            code = code.replace("TODO: ", "").replace("TODO", "none")
        try:
            exec(compile(code, name, "exec"), {"__name__": "elsewhere"})
            assert name in REGISTRIES[kind].names()
        finally:
            REGISTRIES[kind]._parts.pop(name, None)
            REGISTRIES[kind]._functions.pop(name, None)


def test_the_lists_of_parts_are_up_to_date(scaffold):
    for path, text in scaffold.indexes().items():
        assert path.read_text() == text, "run scripts/new_part.py index"


def test_a_script_that_names_its_interpreter_can_be_called():
    scripts = [path for path in (ROOT / "scripts").iterdir() if path.is_file()]
    named = [path for path in scripts if path.read_bytes().startswith(b"#!")]
    assert named and [path.name for path in named if not os.access(path, os.X_OK)] == []
