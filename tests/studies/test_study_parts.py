"""Parts of studies that are kept in the repository: nothing is lost, and studies go on there."""

import importlib.util
import json
from pathlib import Path

import pytest

from attlas.studies import STUDIES
from attlas.studies.support.run import Run
from attlas.studies.support.several_models import models_at, named

MOST_BYTES = 2**20
ROOT = Path(__file__).parents[2]


def loaded():
    path = ROOT / "scripts" / "study_parts.py"
    spec = importlib.util.spec_from_file_location("study_parts", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def script(monkeypatch, tmp_path):
    module = loaded()
    monkeypatch.setattr(module, "KEPT", tmp_path / "kept")
    return module


def run_in(folder, **settings):
    return Run("chefer", {"count": 3, "seeds": 2, **settings}, folder, "cpu", lambda _: None)


def test_a_study_goes_on_from_what_is_kept(script, tmp_path):
    one, other = tmp_path / "one", tmp_path / "other"
    for folder, parts in ((one, ("first", "second")), (other, ("third",))):
        folder.mkdir()
        for number, part in enumerate(parts):
            run_in(folder).kept(part, lambda n=number: {"value": 0.1 + n, "unknown": None})
    assert script.keep(one) == {"chefer": 2}
    before = (script.KEPT / "chefer.jsonl.gz").read_bytes()
    assert script.keep(one) == {"chefer": 2}
    assert (script.KEPT / "chefer.jsonl.gz").read_bytes() == before
    assert script.keep(other) == {"chefer": 3}
    again = tmp_path / "again"
    assert script.lay(again) == 3 and script.lay(again) == 0
    for folder in (one, other):
        for place in (folder / "parts").iterdir():
            assert (again / "parts" / place.name).read_bytes() == place.read_bytes()

    def never():
        raise AssertionError("it is there")

    found = run_in(again, seeds=5).kept("second", never)
    assert found == {"value": 1.1, "unknown": None}
    assert not run_in(again, count=4).is_kept("second")


def test_a_model_is_known_by_the_record_of_its_training(script, tmp_path, monkeypatch):
    folder = tmp_path / "found"
    for seed in (0, 1):
        (folder / f"models/movies/seed-{seed}").mkdir(parents=True)
        record = {"dev accuracy": 0.5, "weights": f"abc{seed}"}
        place = folder / f"models/movies/seed-{seed}" / "training.json"
        place.write_text(json.dumps(record), encoding="utf-8")
    monkeypatch.chdir(folder)
    part = f"raw_attention on {named('models/movies/seed-1')}"
    run_in(folder).kept(part, lambda: 5)
    script.keep(folder)
    again = tmp_path / "again"
    assert script.lay(again) == 2
    monkeypatch.chdir(again)
    assert models_at("models/movies") == ["models/movies/seed-1"]
    assert run_in(again).is_kept(f"raw_attention on {named('models/movies/seed-1')}")
    Path("models/movies/seed-1/training.json").write_text('{"weights": "of another training"}')
    assert not run_in(again).is_kept(f"raw_attention on {named('models/movies/seed-1')}")


def test_what_is_kept_is_small_and_whole():
    script = loaded()
    for file in script.KEPT.glob(f"*{script.ENDING}"):
        content, study = file.read_bytes(), file.name.removesuffix(script.ENDING)
        assert study in STUDIES.names() and len(content) <= MOST_BYTES
        assert script.packed(script.unpacked(study, content)) == content
