"""What every study owes, and studies by name."""

from dataclasses import replace

import pytest
from part_folders import check_files

import attlas
from attlas.errors import UnknownNameError, UsageError
from attlas.studies import STUDIES


def stand_in(monkeypatch, function):
    study = replace(STUDIES["attattr"], function=function)
    monkeypatch.setitem(STUDIES._parts, "attattr", study)


def test_every_study_has_its_file_its_test_and_its_page():
    check_files(STUDIES)


def test_its_record_is_whole():
    assert attlas.list_studies() == [each.name for each in STUDIES]
    for each in STUDIES:
        assert {"out", "watch"} <= set(each.options) and each.about and each.paper


def test_a_study_is_found_by_its_name_and_handed_its_options(monkeypatch):
    stand_in(monkeypatch, lambda models, out, steps=3: (models, out, steps))
    assert attlas.study("attattr", models="here", out="there") == ("here", "there", 3)
    assert attlas.study("attattr", models="here", out="there", steps=5)[2] == 5


def test_mistakes_are_named():
    with pytest.raises(UnknownNameError, match=r"unknown study 'atattr'.*did you mean 'attattr'"):
        attlas.study("atattr")
    with pytest.raises(UnknownNameError, match=r"unknown option of attattr 'model'.*'models'"):
        attlas.study("attattr", model="here", out="there")
    with pytest.raises(UsageError, match="the study attattr needs models and out"):
        attlas.study("attattr", steps=5)
