"""Errors say what was given and what is allowed, whatever was given."""

from pathlib import Path

import pytest

import attlas
from attlas.errors import UnknownNameError, UnsupportedModelError, UsageError, refuse_address


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("cats", "unknown pet 'cats': did you mean 'cat'? allowed: cat, dog"),
        (None, "unknown pet None: allowed: cat, dog"),
        (7, "unknown pet 7: allowed: cat, dog"),
    ],
)
def test_an_unknown_name_is_shown_with_what_is_allowed(name, message):
    assert str(UnknownNameError("pet", name, ["cat", "dog"])) == message


def test_the_failure_of_a_model_is_one_line_that_names_it():
    told = UnsupportedModelError.of_failure(object(), ValueError("no boxes\nat all"))
    assert str(told) == "object fails on this input: ValueError: no boxes"
    silent = UnsupportedModelError.of_failure(object(), AssertionError())
    assert str(silent) == "object fails on this input: AssertionError"


def test_an_interrupt_that_a_failure_covers_is_an_interrupt():
    with pytest.raises(RuntimeError) as covered:
        try:
            raise KeyboardInterrupt
        finally:
            raise RuntimeError("a stack that is empty")
    with pytest.raises(KeyboardInterrupt):
        UnsupportedModelError.of_failure(object(), covered.value)


@pytest.mark.parametrize(
    "name", ["s3://bucket/a", "s3:/bucket/a", "memory://a", "FILE:///a", "gs+x://b/c" * 50]
)
def test_an_address_is_refused_where_a_file_is_meant(name):
    for given in (name, Path(name)):
        with pytest.raises(UsageError, match="is an address: this is written to a disk") as caught:
            refuse_address(given)
        assert "\n" not in str(caught.value) and len(str(caught.value)) < 250


def test_a_path_is_no_address(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "s3:").mkdir()
    for name in ("a:b", "C:/a", "a/b://c", "s3:/a", "/s3:/b", "", "b:", "my notes:/a"):
        refuse_address(name)


def test_no_result_goes_into_a_folder_called_after_a_store(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    subject = attlas.load("shortcut_token")
    explained = attlas.explain(subject, "so good", "raw_attention")
    for write in (
        explained.save,
        explained.to_html,
        lambda out: attlas.audit(subject, "shortcuts", quick=True, count=8, out=out),
        lambda out: attlas.study("poster", quick=True, out=out),
    ):
        with pytest.raises(UsageError, match="is an address"):
            write("s3://bucket/found")
    assert [*tmp_path.iterdir()] == []
