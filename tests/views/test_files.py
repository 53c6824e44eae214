import errno
import os
import re
import stat
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from attlas.errors import ResultFileError
from attlas.views import write_whole


def only_in(folder):
    return sorted(path.name for path in folder.iterdir())


@pytest.mark.parametrize("data", ["é\r\n</script>", b"\x00\xff"])
def test_writes_what_was_given_and_nothing_else(tmp_path, data):
    path = write_whole(tmp_path / "a.html", data)
    assert path == tmp_path / "a.html"
    assert path.read_bytes() == (data.encode() if isinstance(data, str) else data)
    assert only_in(tmp_path) == ["a.html"]


def test_replaces_a_file_and_keeps_its_permissions(tmp_path):
    path = tmp_path / "a.html"
    path.write_text("old")
    path.chmod(0o640)
    write_whole(str(path), "new")
    assert path.read_text() == "new"
    assert stat.S_IMODE(path.stat().st_mode) == 0o640


def test_a_new_file_has_the_permissions_of_any_new_file(tmp_path):
    (tmp_path / "plain").write_text("")
    write_whole(tmp_path / "ours", "")
    assert (tmp_path / "ours").stat().st_mode == (tmp_path / "plain").stat().st_mode


def test_writes_through_a_link(tmp_path):
    (tmp_path / "link").symlink_to(tmp_path / "file")
    write_whole(tmp_path / "link", "text")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "file").read_text() == "text"


def refused(path):
    with pytest.raises(ResultFileError, match=re.escape(repr(str(path)))) as caught:
        write_whole(path, "new")
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_a_folder_is_no_file(tmp_path):
    (tmp_path / "folder").mkdir()
    assert "directory" in refused(tmp_path / "folder").lower()
    assert only_in(tmp_path) == ["folder"]


def test_a_missing_folder_is_not_made(tmp_path):
    assert "No such file or directory" in refused(tmp_path / "missing" / "a.html")
    assert only_in(tmp_path) == []


def test_a_file_is_no_folder(tmp_path):
    (tmp_path / "file").write_text("old")
    refused(tmp_path / "file" / "a.html")
    assert (tmp_path / "file").read_text() == "old"


def test_a_name_with_a_zero_in_it(tmp_path):
    assert "null byte" in refused(f"{tmp_path}/a\0b")


@contextmanager
def not_root():
    """Root may write anywhere, so be nobody for a while."""
    was = os.geteuid()
    if was == 0:
        os.seteuid(65534)
    yield
    os.seteuid(was)


def test_a_folder_one_may_not_write_in():
    with TemporaryDirectory() as name:
        path = Path(name, "a.html")
        path.write_text("old")
        path.parent.chmod(0o555)
        with not_root():
            assert "Permission denied" in refused(path)
        assert path.read_text() == "old"
        assert only_in(path.parent) == ["a.html"]
        path.parent.chmod(0o755)


@pytest.mark.parametrize("step", ["fsync", "replace"])
def test_a_failure_on_the_way_leaves_the_old_file_and_no_draft(tmp_path, monkeypatch, step):
    path = tmp_path / "a.html"
    path.write_text("old")

    def fail(*_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, step, fail)
    assert refused(path).endswith("No space left on device")
    assert path.read_text() == "old"
    assert only_in(tmp_path) == ["a.html"]


def test_an_interruption_leaves_no_draft(tmp_path, monkeypatch):
    def interrupt(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "replace", interrupt)
    with pytest.raises(KeyboardInterrupt):
        write_whole(tmp_path / "a.html", "new")
    assert only_in(tmp_path) == []
