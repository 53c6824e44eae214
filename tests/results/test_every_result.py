"""Every result is saved, read and shown in the same way."""

import io
import json

import pytest
from results.every_result import EVERY, SAVED, result_classes
from rich.console import Console
from safetensors import safe_open

from attlas.errors import ResultFileError


def content(path):
    """The header of a saved file and its arrays, to the byte."""
    with safe_open(path, framework="numpy") as file:
        arrays = {name: file.get_tensor(name).tobytes() for name in file.keys()}  # noqa: SIM118
        return file.metadata(), arrays


every = pytest.mark.parametrize("name", EVERY)


def test_every_class_of_results_has_a_sample():
    classes = {each.__name__ for each in result_classes()}
    assert classes - set(EVERY) == set(), "add a sample to EVERY in tests/results/every_result.py"
    assert set(EVERY) - classes == set(), "there is no class of this name: take it out of EVERY"


@every
def test_every_sample_has_a_saved_file(name):
    save = f'EVERY["{name}"]().save(SAVED / "{name}.attlas")'
    assert (SAVED / f"{name}.attlas").is_file(), f"with tests/results/every_result.py, run {save}"


@every
def test_a_saved_file_holds_the_same_as_in_earlier_versions(name, tmp_path):
    path = EVERY[name]().save(tmp_path / "result")
    assert content(path) == content(SAVED / f"{name}.attlas")


@every
def test_a_saved_file_of_an_earlier_version_is_read(name):
    result = EVERY[name]()
    loaded = type(result).load(SAVED / f"{name}.attlas")
    assert json.dumps(loaded.payload()) == json.dumps(result.payload())


QUESTIONS = set(EVERY) - {"CheckResult", "Report", "TrialResult"}


@pytest.mark.parametrize("name", sorted(QUESTIONS))
def test_the_headline_of_a_page_is_a_question(name):
    headline = EVERY[name]().payload()["headline"]
    assert headline.endswith("?")
    assert headline in EVERY[name]()._repr_html_() or name == "Maps"


@every
def test_a_file_of_another_kind_is_refused(name, tmp_path):
    other = "Tree" if name != "Tree" else "Triggers"
    with pytest.raises(ResultFileError, match=f"holds '{other.lower()}', not"):
        type(EVERY[name]()).load(SAVED / f"{other}.attlas")


@every
def test_a_result_is_read_from_its_json(name):
    result = EVERY[name]()
    record = json.loads(json.dumps(result.to_dict(), allow_nan=False))
    assert type(result).from_dict(record).to_dict() == result.to_dict()


@every
def test_the_payload_is_of_the_kind_that_the_class_names(name):
    result = EVERY[name]()
    assert result.payload()["kind"] == result.view_kind


@every
def test_the_payload_has_what_a_page_needs(name):
    payload = EVERY[name]().payload()
    assert payload.get("version") == 1, 'payload() needs "version": 1'
    assert isinstance(payload.get("tokens"), list), 'payload() needs "tokens", [] if it has no text'


@every
def test_a_result_shows_itself_everywhere(name, tmp_path):
    result = EVERY[name]()
    stream = io.StringIO()
    Console(file=stream, width=100).print(result)
    assert stream.getvalue().strip()
    assert result._repr_html_().startswith('<div class="attlas-fragment"')
    assert "<title>" in result.to_html(tmp_path / "page.html").read_text("utf-8")
