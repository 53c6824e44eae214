"""Studies by name."""

from pathlib import Path

import pytest

import attlas
from attlas.errors import UnknownNameError, UsageError
from attlas.studies import STUDIES, known
from attlas.studies import attattr as module

DOCS = Path(__file__).parents[2] / "docs" / "studies"


def test_a_study_is_found_by_its_name_and_handed_its_options(monkeypatch):
    monkeypatch.setattr(module, "attattr", lambda models, out, steps=3: (models, out, steps))
    assert attlas.study("attattr", models="here", out="there") == ("here", "there", 3)
    assert attlas.study("attattr", models="here", out="there", steps=5)[2] == 5


def test_hyphens_and_underscores_are_the_same(monkeypatch):
    studies = known.Registry("study")
    studies.add("jain_wallace", known.Study("attattr", "", ""))
    monkeypatch.setattr(known, "STUDIES", studies)
    monkeypatch.setattr(module, "attattr", lambda: "run")
    assert attlas.study("jain-wallace") == attlas.study("jain_wallace") == "run"


def test_mistakes_are_named():
    with pytest.raises(UnknownNameError, match=r"unknown study 'atattr'.*did you mean 'attattr'"):
        attlas.study("atattr")
    with pytest.raises(UnknownNameError, match=r"unknown option of attattr 'model'.*'models'"):
        attlas.study("attattr", model="here", out="there")
    with pytest.raises(UsageError, match="the study attattr needs models and out"):
        attlas.study("attattr", steps=5)


def test_every_study_is_a_function_of_its_name_with_a_page():
    assert attlas.list_studies() == [each.name for each in STUDIES]
    for each in STUDIES:
        assert {"out", "watch"} <= set(each.options) and each.about and each.paper
    assert {path.stem for path in DOCS.glob("*.md")} - {"README"} == set(attlas.list_studies())
