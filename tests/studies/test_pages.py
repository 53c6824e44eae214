"""The pages of studies say what the kept results say."""

import importlib.util
import json
from pathlib import Path

import pytest
from results.every_result import EVERY

ROOT = Path(__file__).parents[2]


@pytest.fixture
def script():
    path = ROOT / "scripts" / "studies_page.py"
    spec = importlib.util.spec_from_file_location("studies_page", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_pages_are_up_to_date(script):
    for path, text in script.pages().items():
        assert path.read_text("utf-8") == text, "run scripts/studies_page.py"


def test_the_record_of_a_study_says_how_long_its_full_run_took(script):
    for name in script.STUDIES.built_in:
        kept = script.kept(name)
        assert script.STUDIES[name].takes[1] == (0 if kept is None else round(kept.seconds)), name


def test_the_result_of_a_full_run_is_shown(script, tmp_path, monkeypatch):
    monkeypatch.setattr(script, "KEPT", tmp_path / "kept")
    record = {**EVERY["StudyResult"]().to_dict(), "quick": False}
    (tmp_path / "poster.json").write_text(json.dumps(record))
    assert script.take_over(tmp_path) == ["poster"]
    pages = {path.name: text for path, text in script.pages().items()}
    row = "| [poster](poster.md) | Permuting keys costs 6 points. | partly | 9.5 | 6 |"
    assert row in pages["README.md"] and "It costs more." in pages["poster.md"]
    assert "has not been run" in pages["bias.md"]


def test_a_quick_run_is_refused(script, tmp_path):
    (tmp_path / "poster.json").write_text(json.dumps(EVERY["StudyResult"]().to_dict()))
    with pytest.raises(SystemExit, match="is of a quick run"):
        script.take_over(tmp_path)


def test_a_page_that_shows_a_picture_gets_it(script, tmp_path, monkeypatch):
    record = EVERY["StudyResult"]()
    monkeypatch.setattr(script, "PAGES", tmp_path)
    monkeypatch.setattr(script, "PICTURES", tmp_path / "images")
    page = tmp_path / f"{record.name}.md"
    page.write_text("no picture")
    script.draw(record)
    assert not (tmp_path / "images").exists()
    page.write_text(f"![what it found](images/{record.name}.png)")
    script.draw(record)
    assert (tmp_path / "images" / f"{record.name}.png").read_bytes().startswith(b"\x89PNG")


def test_a_result_beside_the_main_one_is_shown_where_the_page_has_its_mark(
    script, tmp_path, monkeypatch
):
    monkeypatch.setattr(script, "KEPT", tmp_path / "kept")
    record = {**EVERY["StudyResult"]().to_dict(), "quick": False}
    (tmp_path / "poster.json").write_text(json.dumps(record))
    script.take_over(tmp_path, "small")
    assert script.kept("poster") is None  # the main result is another
    start, end = script.START.format("result small"), script.END.format("result small")
    page = script.with_beside(f"before\n{start}\nold\n{end}\nbehind", "poster")
    assert "It costs more." in page and "old" not in page and page.startswith("before")
    with pytest.raises(SystemExit, match="has no"):
        script.with_beside("no mark", "poster")
