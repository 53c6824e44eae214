"""What audits leave for explanations: a record that was changed is none, and says nothing odd."""

import json

import pytest
from subjects import subject

from attlas.auditing.records import AuditRecord, _path, find_record

SOUND = {"data": "mine", "texts": 3, "found": {"lime": [0.1, 0.2]}, "page": "/a.html"}


@pytest.fixture
def kept(tmp_path, monkeypatch):
    monkeypatch.setenv("ATTLAS_AUDITS", str(tmp_path))
    own = subject("sequence classification")

    def keep(**changes):
        _path(own).write_text(json.dumps({**SOUND, **changes}))
        return find_record(own)

    return keep


def test_a_record_is_found(kept):
    assert kept() == AuditRecord("mine", 3, {"lime": (0.1, 0.2)}, "/a.html")


@pytest.mark.parametrize(
    "changes",
    [
        {"found": {"lime": ["x", "y"]}},
        {"found": {"lime": [None, None]}},
        {"found": [1]},
        {"texts": "x"},
        {"data": 7},
        {"page": 7},
    ],
    ids=str,
)
def test_a_damaged_record_is_none(changes, kept):
    assert kept(**changes) is None


def test_what_a_record_says_does_nothing_to_a_terminal(kept):
    found = kept(data="\x1b[2J", page="/\x1b[31m")
    assert (found.data + found.page).isprintable()
