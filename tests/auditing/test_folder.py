"""The folder of an audit: nothing lost, nothing twice, one run at a time, one clear line if not."""

import errno
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from attlas.auditing.folder import Folder
from attlas.errors import AttlasError, ResultFileError, UsageError
from attlas.results.support.tables import first_difference

SETTINGS = {"model": "m", "seed": 0, "methods": ["a", "b"], "options": {"lime": {"samples": 9}}}


def rows(number):
    return pd.DataFrame({"text": [0, 1], "method": ["a", "b"], "value": [number / 3, np.nan]})


def test_a_table_comes_back_as_it_was(tmp_path):
    names = ["a", "text 1/of: two", "..", ".hidden", "é%2F", "con.parquet"]
    with Folder(tmp_path / "new" / "audit", SETTINGS) as folder:
        for number, name in enumerate(names):
            assert not folder.has(name)
            folder.write(name, rows(number), {"n": number, "third": 1 / 3})
        assert folder.tables() == sorted(names)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["new"]
    with Folder(tmp_path / "new" / "audit", SETTINGS) as folder:
        assert folder.tables() == sorted(names)
        for number, name in enumerate(names):
            frame, details = folder.read(name)
            pd.testing.assert_frame_equal(frame, rows(number), check_exact=True)
            assert details == {"n": number, "third": 1 / 3}


def test_a_table_may_be_an_arrow_table_and_is_replaced(tmp_path):
    with Folder(tmp_path, SETTINGS) as folder:
        folder.write("a", rows(1))
        folder.write("a", pa.table({"x": [1, 2]}))
        frame, details = folder.read("a")
        assert (frame.to_dict("list"), details) == ({"x": [1, 2]}, {})
        with pytest.raises(UsageError, match="a name"):
            folder.write("", rows(1))
        with pytest.raises(ResultFileError, match=r"missing\.parquet"):
            folder.read("missing")
        with pytest.raises(ResultFileError, match="cannot write"):
            folder.write("long" * 99, rows(1))


def part_file(folder, name):
    return folder / "parts" / f"{name}.parquet"


@pytest.mark.parametrize("keep", [0, 3, 0.5, 0.99])
def test_a_table_that_is_cut_is_not_done(keep, tmp_path):
    with Folder(tmp_path, SETTINGS) as folder:
        folder.write("a", rows(1))
        folder.write("b", rows(2))
    file = part_file(tmp_path, "a")
    data = file.read_bytes()
    file.write_bytes(data[: keep if keep in (0, 3) else int(keep * len(data))])
    with Folder(tmp_path, SETTINGS) as folder:
        assert not folder.has("a")
        assert folder.tables() == ["b"]
        folder.write("a", rows(3))
        assert folder.tables() == ["a", "b"]
        assert folder.read("a")[0]["value"][0] == 1.0


def test_what_a_killed_run_was_writing_is_cleared_away(tmp_path):
    with Folder(tmp_path, SETTINGS) as folder:
        folder.write("a", rows(1))
    for place in (tmp_path, tmp_path / "parts"):
        (place / ".attlas-0123456789abcdef").write_bytes(b"PAR1 half of")
    with Folder(tmp_path, SETTINGS) as folder:
        assert folder.tables() == ["a"]
    assert list(tmp_path.rglob(".attlas-*")) == []


def test_a_table_with_a_changed_figure_is_not_done(tmp_path):
    figure = np.float64(0.123456789)
    with Folder(tmp_path, SETTINGS) as folder:
        folder.write("a", pd.DataFrame({"value": [figure]}))
    file = part_file(tmp_path, "a")
    data = bytearray(file.read_bytes())
    place = data.find(figure.tobytes())
    assert place > 0
    data[place] ^= 1
    file.write_bytes(bytes(data))
    with Folder(tmp_path, SETTINGS) as folder:
        assert not folder.has("a")


def test_results_and_manifest(tmp_path):
    with Folder(tmp_path, SETTINGS) as folder:
        assert not folder.done
        assert not folder.manifest["done"]
        folder.write("a", rows(1))
        folder.finish(rows(2), {"versions": {"torch": "2"}, "verdict": "partly", "settings": "x"})
        assert folder.done
        folder.remove_tables()
        assert folder.tables() == []
    said = json.loads((tmp_path / "manifest.json").read_text())
    assert len(said.pop("digest")) == 64
    assert said["settings"] == SETTINGS
    assert said["versions"] == {"torch": "2"}
    assert said["done"] is True
    assert said["started"] <= said["finished"]
    pd.testing.assert_frame_equal(pd.read_parquet(tmp_path / "results.parquet"), rows(2))
    with Folder(tmp_path, SETTINGS) as folder:
        assert folder.done
        assert folder.manifest == said
        pd.testing.assert_frame_equal(folder.results(), rows(2))
    names = {path.name for path in tmp_path.iterdir()}
    assert names == {"lock", "manifest.json", "parts", "results.parquet"}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"seed": 1}, "seed is 0 there and 1 here"),
        ({"methods": ["a", "c"]}, 'methods.2 is "b" there and "c" here'),
        ({"methods": ["a"]}, 'methods.2 is "b" there and not given here'),
        ({"options": {"lime": {"samples": 10}}}, "options.lime.samples is 9 there and 10 here"),
        ({"more": None}, "more is not given there and null here"),
        ({"model": ["m"]}, 'model is "m" there and \\["m"\\] here'),
    ],
)
def test_other_settings_are_refused_by_name(change, message, tmp_path):
    with Folder(tmp_path, SETTINGS) as folder:
        folder.write("a", rows(1))
    with pytest.raises(UsageError, match=message), Folder(tmp_path, {**SETTINGS, **change}):
        pass
    with Folder(tmp_path, {"seed": 0, **SETTINGS, "methods": ("a", "b")}) as folder:
        assert folder.has("a")


def test_the_first_difference_is_in_the_order_of_the_settings():
    assert first_difference({"a": 1, "b": 2}, {"b": 3, "a": 4}) == ("b", 2, 3)
    assert first_difference({"a": {"x": 1}}, {"a": {"x": 1}}) is None


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("manifest.json", '{"name": "a site"}', "no audit wrote it"),
        ("manifest.json", "[1]", "no audit wrote it"),
        ("manifest.json", '{"settings": {}, "done"', "cannot be read"),
        ("manifest.json", '{"format": 1, "settings": {}, "done": false}', "format 1"),
        ("manifest.json", '{"format": 2, "settings": {}, "done": false}', "not what was written"),
        ("manifest.json", "[" * 100_000, "cannot be read"),
        ("results.parquet", "mine", "no audit wrote it"),
        ("report.json", "mine", "no audit wrote it"),
        ("report.html", "mine", "no audit wrote it"),
        ("parts", "mine", "no audit wrote it"),
        ("lock", "mine", "Attlas did not write it"),
    ],
)
def test_the_files_of_others_are_left_alone(name, content, message, tmp_path):
    (tmp_path / name).write_text(content)
    with pytest.raises(AttlasError, match=message), Folder(tmp_path, SETTINGS):
        pass
    assert (tmp_path / name).read_text() == content
    assert [path.name for path in tmp_path.iterdir()] == [name]  # and no lock beside it


@pytest.mark.parametrize("content", ["mine", "", None], ids=["full", "empty", "nowhere"])
def test_nothing_is_written_through_a_link(content, tmp_path):
    target = tmp_path / "mine"
    if content is not None:
        target.write_text(content)
    for name in ("lock", "report.html", "report.json", "results.parquet", "manifest.json"):
        folder = tmp_path / f"with {name}"
        folder.mkdir()
        (folder / name).symlink_to(target)
        with pytest.raises(AttlasError), Folder(folder, SETTINGS):
            pass
        assert (target.read_text() if target.exists() else None) == content
        assert (folder / name).is_symlink()


def test_a_lock_that_becomes_a_link_meanwhile_is_not_followed(tmp_path, monkeypatch):
    (tmp_path / "mine").write_text("mine")
    (tmp_path / "lock").symlink_to(tmp_path / "mine")
    monkeypatch.setattr("attlas.results.support.lock.is_lock", lambda path: True)
    with pytest.raises(ResultFileError, match="cannot write in"), Folder(tmp_path, SETTINGS):
        pass
    assert (tmp_path / "mine").read_text() == "mine"


def test_drafts_of_others_stay(tmp_path):
    mine = [tmp_path / ".attlas-mine", tmp_path / ".attlas-0123456789abcdef"]
    for each in mine:
        each.write_text("mine")
    with Folder(tmp_path, SETTINGS) as folder:
        folder.write("a", rows(1))
    assert [each.read_text() for each in mine] == ["mine", "mine"]
    with Folder(tmp_path, SETTINGS):  # now it is the audit's, but only its own drafts have numbers
        pass
    assert mine[0].read_text() == "mine"


def test_any_flipped_bit_of_a_table_is_seen(tmp_path):
    with Folder(tmp_path, SETTINGS) as folder:
        folder.write("a", rows(1), {"n": 1})
    data = part_file(tmp_path, "a").read_bytes()
    random = np.random.default_rng(0)
    footer = int.from_bytes(data[-8:-4], "little")
    places = [*random.integers(0, 8 * len(data), 300), *random.integers(8 * -footer, 0, 300)]
    with Folder(tmp_path, SETTINGS) as folder:
        for place in places:
            changed = bytearray(data)
            changed[place // 8] ^= 1 << (place % 8)
            part_file(tmp_path, "a").write_bytes(changed)
            with pytest.raises(ResultFileError):
                folder.read("a")
        part_file(tmp_path, "a").write_bytes(data)
        assert folder.read("a")[1] == {"n": 1}


def test_a_table_in_the_place_of_another_is_not_done(tmp_path):
    with Folder(tmp_path / "one", SETTINGS) as folder:
        folder.write("a", rows(1))
        folder.write("b", rows(2))
    with Folder(tmp_path / "other", {**SETTINGS, "seed": 1}) as folder:
        folder.write("c", rows(3))
    parts = tmp_path / "one" / "parts"
    part_file(tmp_path / "one", "a").rename(parts / "kept")
    part_file(tmp_path / "one", "b").rename(part_file(tmp_path / "one", "a"))
    (parts / "kept").rename(part_file(tmp_path / "one", "b"))
    part_file(tmp_path / "other", "c").rename(part_file(tmp_path / "one", "c"))
    with Folder(tmp_path / "one", SETTINGS) as folder:
        assert folder.tables() == []


def test_a_changed_manifest_is_refused(tmp_path):
    with Folder(tmp_path, SETTINGS) as folder, folder.noting_run(1.0):
        pass
    path = tmp_path / "manifest.json"
    path.write_text(path.read_text().replace("1.0,", "9.0,"))
    with pytest.raises(ResultFileError, match="not what was written"), Folder(tmp_path, SETTINGS):
        pass


def test_a_file_in_the_place_of_the_folder(tmp_path):
    (tmp_path / "file").write_text("")
    for path in (tmp_path / "file", tmp_path / "file" / "below"):
        with pytest.raises(UsageError, match="a file of that name exists"), Folder(path, SETTINGS):
            pass


def test_a_place_that_cannot_be_written(tmp_path, monkeypatch):
    with pytest.raises(ResultFileError, match="cannot make the folder"):
        Folder("/proc/attlas", SETTINGS).__enter__()

    def refuse(*given, **options):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))

    monkeypatch.setattr("attlas.results.support.lock.FileIO", refuse)
    with pytest.raises(ResultFileError, match=r"cannot write in.*Permission denied"):
        Folder(tmp_path, SETTINGS).__enter__()


def test_a_full_disk_is_one_clear_error_and_loses_nothing(tmp_path, monkeypatch):
    def full(descriptor):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with Folder(tmp_path, SETTINGS) as folder:
        folder.write("a", rows(1))
        with monkeypatch.context() as patch:
            patch.setattr(os, "fsync", full)
            for act in (lambda: folder.write("b", rows(2)), lambda: folder.finish(rows(2), {})):
                with pytest.raises(ResultFileError, match=r"cannot write.*No space left"):
                    act()
        assert folder.tables() == ["a"]
        assert not folder.done
        folder.write("b", rows(2))
    assert sorted(path.name for path in (tmp_path / "parts").iterdir()) == [
        "a.parquet",
        "b.parquet",
    ]


FULL = """
import os, sys
import numpy as np, pandas as pd
from attlas.auditing.folder import Folder
from attlas.errors import ResultFileError

written = 0
with Folder(sys.argv[1], {}) as folder:
    ballast = os.path.join(sys.argv[1], "ballast")
    open(ballast, "wb").write(bytes(20_000))
    noise = np.random.default_rng(0)
    try:
        for number in range(99):
            folder.write(str(number), pd.DataFrame({"value": noise.random(1000)}))
            written += 1
    except ResultFileError as error:
        assert "No space left" in str(error), error
    assert 0 < written < 99, written
    assert len(folder.tables()) == written
    os.remove(ballast)
with Folder(sys.argv[1], {}) as folder:
    assert len(folder.tables()) == written
    folder.write(str(written), pd.DataFrame({"value": noise.random(1000)}))
print("went on", written)
"""


@pytest.mark.slow
def test_a_disk_that_is_really_full(tmp_path):
    """On a file system of 128 kB, in a name space of its own, where that is allowed."""
    mount = f'mount -t tmpfs -o size=128k tmpfs {tmp_path} && exec "$@"'
    own = ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c", mount, "sh"]
    try:
        allowed = subprocess.run([*own, "true"], capture_output=True).returncode == 0
    except FileNotFoundError:
        allowed = False
    if not allowed:
        pytest.skip("no file system may be mounted here")
    command = [*own, sys.executable, "-c", FULL, str(tmp_path)]
    ran = subprocess.run(command, capture_output=True, text=True)
    assert ran.stdout.startswith("went on"), ran.stderr


def test_a_second_run_is_refused_with_the_first_one_s_number(tmp_path):
    used = rf"in use by another run \(process {os.getpid()} on"
    with Folder(tmp_path, SETTINGS), pytest.raises(UsageError, match=used):
        Folder(tmp_path, SETTINGS).__enter__()
    with Folder(tmp_path, SETTINGS):
        pass


def test_the_lock_goes_with_an_error(tmp_path):
    with pytest.raises(ZeroDivisionError), Folder(tmp_path, SETTINGS):
        raise ZeroDivisionError
    with pytest.raises(UsageError), Folder(tmp_path, {}):
        pass
    with Folder(tmp_path, SETTINGS):
        pass


# A writer that is killed at any moment: by itself at the call that is named, or from outside.
# It notes each part when it is written; the parent forks, so that imports come once.
WRITER = """
import os, random, signal, sys, time
import pandas as pd
from attlas.auditing.folder import Folder
from attlas.errors import UsageError

home, count = sys.argv[1], 60
notes = os.path.join(os.path.dirname(home), "notes")

def note(line):
    file = os.open(notes, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.write(file, (line + "\\n").encode())
    os.close(file)

def noted():
    return open(notes).read().split() if os.path.exists(notes) else []

def work(most):
    with Folder(home, {"count": count}) as folder:
        for name in noted():
            assert folder.has(name), "lost " + name
        written = 0
        for number in range(count):
            name = f"part{number}"
            if not folder.has(name):
                if written == most:
                    time.sleep(600)  # to be killed
                written += 1
                folder.write(name, pd.DataFrame({"value": [number / 7] * 500}), {"n": number})
                note(name)
        frames = [folder.read(f"part{number}")[0] for number in range(count)]
        folder.finish(pd.concat(frames), {})

def kill_at(call, after):
    real, left = getattr(os, call), [after]
    def counting(*given):
        left[0] -= 1
        if left[0] == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        return real(*given)
    setattr(os, call, counting)

chance = random.Random(int(sys.argv[2]))
plans = [("fsync", 4), ("replace", 3), ("fsync", 1), ("replace", 5)] + [None] * 6 + ["end"]
for plan in plans:
    begun = len(noted())
    child = os.fork()
    if child == 0:
        try:
            if isinstance(plan, tuple):
                kill_at(*plan)
            work(6 if plan is None else count)
            os._exit(0)
        except BaseException as error:
            os.write(2, repr(error).encode())
            os._exit(1)
    if plan is None:
        enough = begun + chance.randint(1, 4)
        while len(noted()) < enough:
            time.sleep(0.0005)
        try:
            Folder(home, {"count": count}).__enter__()
        except UsageError as error:
            assert f"process {child} on" in str(error), error
        else:
            raise AssertionError("two runs at once")
        time.sleep(chance.random() * 0.004)
        os.kill(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    assert status in ((0,) if plan == "end" else (signal.SIGKILL,)), (plan, status)
print("ended")
"""


@pytest.mark.slow
def test_killed_at_ten_moments_it_loses_nothing_and_repeats_nothing(tmp_path):
    home = tmp_path / "audit"
    command = [sys.executable, "-c", WRITER, str(home), "1"]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert ran.stdout == "ended\n", ran.stderr
    notes = (tmp_path / "notes").read_text().split()
    assert len(notes) == len(set(notes))  # nothing that was finished was done again
    with Folder(home, {"count": 60}) as folder:
        assert folder.done
        assert len(folder.tables()) == 60
        assert folder.results()["value"].tolist() == [n / 7 for n in range(60) for _ in range(500)]
    left = [path.name for path in Path(home).rglob(".attlas-*")]
    assert left == []
