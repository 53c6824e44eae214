"""Scores written to an address: the same file, its parts in the store until it is whole."""

import fsspec
import pandas as pd
import pytest
import stores
from subjects import LONG, OTHER, SHORT, subject

import attlas
from attlas.errors import AttlasError, ResultFileError, UsageError
from attlas.explaining import score_parts, writing_scores
from attlas.explaining.score_places import stopped_note

TEXTS = [LONG, SHORT, OTHER, SHORT, LONG, OTHER, SHORT]
METHOD = "raw_attention"
PARTS = ["00000000.parquet", "00000001.parquet", "manifest.json"]


@pytest.fixture(scope="module")
def classifier():
    return subject("sequence classification")


@pytest.fixture(autouse=True)
def small_parts(monkeypatch):
    monkeypatch.setattr(writing_scores, "CHUNK", 3)


@pytest.fixture(params=["memory", "disk"])
def address(request, tmp_path):
    """An address in a store, which is empty afterwards but for what was asked for."""
    yield f"{request.param}://{tmp_path}/scores.parquet"
    system = fsspec.filesystem(request.param)
    left = system.find(str(tmp_path))
    for path in left:
        system.rm_file(path)
    assert {path.rsplit("/")[-1] for path in left} <= {"scores.parquet"}


@pytest.fixture
def stopped(classifier, address, monkeypatch):
    """Two parts of three are done: the work stopped when the third was to be written."""
    write = score_parts.ScoreParts.write

    def stop(parts, number, *others):
        if number == 2:
            raise KeyboardInterrupt
        write(parts, number, *others)

    with monkeypatch.context() as patch:
        patch.setattr(score_parts.ScoreParts, "write", stop)
        with pytest.raises(KeyboardInterrupt) as interrupt:
            attlas.explain_to(classifier, TEXTS, address, METHOD)
    assert interrupt.value.__notes__ == [stopped_note(address)]
    assert f"kept in {address}.parts" in stopped_note(address)
    assert names_in(f"{address}.parts") == PARTS
    return f"{address}.parts"


def store_of(address):
    return fsspec.core.url_to_fs(address)


def names_in(address):
    system, path = store_of(address)
    return sorted(each.rsplit("/")[-1] for each in system.find(path))


def content(address):
    system, path = store_of(address)
    return system.cat_file(path)


def delete(address):
    system, path = store_of(address)
    for each in system.find(path):
        system.rm_file(each)


def put(address, data):
    system, path = store_of(address)
    system.pipe_file(path, data)


@pytest.fixture
def whole(classifier, tmp_path):
    """The bytes of the same scores in a file of this machine."""
    path = tmp_path / "here" / "scores.parquet"
    path.parent.mkdir()
    attlas.explain_to(classifier, TEXTS, path, METHOD)
    data = path.read_bytes()
    path.unlink()
    path.parent.rmdir()
    return data


def test_the_file_is_that_of_a_disk(classifier, address, whole):
    written = attlas.explain_to(classifier, TEXTS, address, METHOD)
    assert (written.path, written.rows, written.earlier) == (address, 7, 0)
    assert content(address) == whole
    assert attlas.explain_to(classifier, TEXTS, address, METHOD).earlier == 7
    assert [*pd.read_parquet(address).text] == TEXTS
    with pytest.raises(UsageError, match="method is"):
        attlas.explain_to(classifier, TEXTS, address, "attention_rollout")


def test_stopped_work_goes_on_in_the_store(classifier, address, stopped, whole):
    assert attlas.explain_to(classifier, TEXTS, address, METHOD).earlier == 6
    assert content(address) == whole


def test_a_damaged_part_is_done_again(classifier, address, stopped, whole):
    broken = bytearray(content(f"{stopped}/{PARTS[1]}"))
    broken[len(broken) // 2] ^= 1
    put(f"{stopped}/{PARTS[1]}", bytes(broken))
    put(f"{stopped}/{PARTS[0]}", b"")
    assert attlas.explain_to(classifier, TEXTS, address, METHOD).earlier == 0
    assert content(address) == whole


def test_parts_of_other_work_are_refused_and_stay(classifier, address, stopped):
    with pytest.raises(UsageError, match=r"scores\.parquet\.parts was begun with other settings"):
        attlas.explain_to(classifier, TEXTS[1:], address, METHOD)
    put(f"{stopped}/manifest.json", b"[" * 90_000)
    with pytest.raises(ResultFileError, match=r"manifest.json cannot be read"):
        attlas.explain_to(classifier, TEXTS, address, METHOD)
    system, path = store_of(f"{stopped}/manifest.json")
    system.rm_file(path)
    with pytest.raises(ResultFileError, match="is not there: delete the folder"):
        attlas.explain_to(classifier, TEXTS, address, METHOD)
    assert names_in(stopped) == PARTS[:2]
    delete(stopped)


@pytest.mark.parametrize("data", [b"", b"PAR1", b"notes of someone"])
def test_the_file_of_others_is_refused(classifier, address, data):
    put(address, data)
    with pytest.raises(UsageError, match="holds no scores of Attlas"):
        attlas.explain_to(classifier, TEXTS, address, METHOD)
    assert content(address) == data and names_in(address) == ["scores.parquet"]


def test_the_folder_of_others_is_refused(classifier, address):
    put(f"{address}.parts/notes.txt", b"of someone")
    with pytest.raises(UsageError, match="Attlas did not write it"):
        attlas.explain_to(classifier, TEXTS, address, METHOD)
    assert names_in(f"{address}.parts") == ["notes.txt"]
    put(f"{address}/inside.txt", b"so this is a folder")
    with pytest.raises(UsageError, match="it is a folder"):
        attlas.explain_to(classifier, TEXTS, address, METHOD)
    delete(address)
    delete(f"{address}.parts")


def test_a_damaged_file_is_refused(classifier, address):
    attlas.explain_to(classifier, TEXTS, address, METHOD)
    broken = bytearray(content(address))
    broken[100] ^= 1
    put(address, bytes(broken))
    with pytest.raises(ResultFileError, match="is damaged"):
        attlas.explain_to(classifier, TEXTS, address, METHOD)


def test_a_store_that_fails_is_one_line_and_the_work_goes_on(classifier, tmp_path, monkeypatch):
    address, written, bad = f"disk://{tmp_path}/scores.parquet", [], [""]

    def fails(path):
        written.append(path)
        if path.endswith(bad[0]):
            raise ConnectionError("the store\nis away")

    monkeypatch.setattr(stores.DiskStore, "fails", staticmethod(fails))
    for bad[0], parts in ((PARTS[1], 1), ("scores.parquet", 3)):
        with pytest.raises(ResultFileError, match=r"cannot write .*: ConnectionError") as caught:
            attlas.explain_to(classifier, TEXTS, address, METHOD)
        assert "\n" not in str(caught.value)
        assert len(names_in(f"{address}.parts")) == 1 + parts
    bad[0] = "nothing"
    assert attlas.explain_to(classifier, TEXTS, address, METHOD).earlier == 7
    assert sum(path.endswith(PARTS[0]) for path in written) == 1


def test_a_store_that_does_not_answer_has_no_part_done_again(classifier, tmp_path, monkeypatch):
    put(f"disk://{tmp_path}/scores.parquet.parts/{PARTS[0]}", b"")
    parts = score_parts.ScoreParts(f"disk://{tmp_path}/scores.parquet", {})

    def cut(*_, **__):
        raise PermissionError(13, "not yours")

    with parts.place.held():
        assert parts.read(0) is None and parts.read(1) is None
        monkeypatch.setattr(stores.DiskStore, "cat_file", cut)
        with pytest.raises(ResultFileError, match=r"cannot read .*: not yours"):
            parts.read(0)


def test_two_runs_into_one_address_make_one_file(classifier, address, whole, monkeypatch):
    """The second begins when the first has one part, and ends before it."""
    write, ran = score_parts.ScoreParts.write, []

    def write_and_run(parts, number, *others):
        write(parts, number, *others)
        if not ran:
            ran.append(1)
            ran.append(attlas.explain_to(classifier, TEXTS, address, METHOD))

    monkeypatch.setattr(score_parts.ScoreParts, "write", write_and_run)
    first = attlas.explain_to(classifier, TEXTS, address, METHOD)
    assert (first.rows, first.earlier, ran[1].earlier) == (7, 0, 3)
    assert content(address) == whole


def test_a_folder_that_is_not_there_is_not_made(classifier, tmp_path):
    place = tmp_path / "bukcet" / "scores.parquet"
    with pytest.raises(ResultFileError, match=r"cannot write 'disk://"):
        attlas.explain_to(classifier, TEXTS, f"disk://{place}", METHOD)
    assert not place.parent.exists()
    with pytest.raises(UsageError, match="is not there"):
        attlas.explain_to(classifier, TEXTS, f"file://{place}", METHOD)


@pytest.mark.parametrize("name", ["s3:a.parquet", "file:a.parquet", "[a]*.parquet", "a::b.parquet"])
def test_a_name_like_an_address_is_a_file(classifier, tmp_path, monkeypatch, name, whole):
    monkeypatch.chdir(tmp_path)
    attlas.explain_to(classifier, TEXTS, name, METHOD)
    assert [path.name for path in tmp_path.glob("*.parquet*")] == [name]
    assert (tmp_path / name).read_bytes() == whole
    assert len(attlas.read_examples(tmp_path / name).examples) == len({*TEXTS})
    assert len(attlas.read_examples(name).examples) == len({*TEXTS})


def test_an_address_of_this_machine_is_a_file_with_a_lock(classifier, tmp_path, whole):
    written = attlas.explain_to(classifier, TEXTS, f"file://{tmp_path}/scores.parquet", METHOD)
    assert written.path == f"file://{tmp_path}/scores.parquet"
    assert (tmp_path / "scores.parquet").read_bytes() == whole
    (tmp_path / "a.parquet.parts").mkdir()
    (tmp_path / "a.parquet.parts" / "lock").write_text("of someone else, who wrote much")
    with pytest.raises(UsageError, match="did not write it"):
        attlas.explain_to(classifier, TEXTS, f"local://{tmp_path}/a.parquet", METHOD)


@pytest.mark.parametrize(
    ("out", "said"),
    [
        ("nope://bucket/scores.parquet", "cannot be opened: ValueError: Protocol not known"),
        ("memory://bucket/scores.csv", "ends in .parquet"),
        ("memory://", "ends in .parquet"),
        ("simplecache::memory://a.parquet", "written to one store"),
        ("memory://[a]/b.parquet", "is a pattern, and scores are written to one file"),
        ("memory://bucket/*.parquet", "is a pattern, and scores are written to one file"),
    ],
)
def test_an_address_that_means_nothing_is_refused(classifier, out, said):
    with pytest.raises(UsageError, match=said) as caught:
        attlas.explain_to(classifier, TEXTS, out, METHOD)
    assert "\n" not in str(caught.value)


def test_the_scores_of_heads_go_there_too(classifier, address):
    data = [(text, number % 2) for number, text in enumerate({*TEXTS})]
    first = attlas.head_importance(classifier, data, "attention", out=address)
    again = attlas.head_importance(classifier, data, "attention", out=address)
    assert (first.mean == again.mean).all() and names_in(address) == ["scores.parquet"]


def test_no_error_of_a_store_is_a_traceback(classifier, monkeypatch, tmp_path):
    monkeypatch.setattr(stores.DiskStore, "info", lambda *_, **__: 1 / 0)
    with pytest.raises(AttlasError, match=r"cannot read .*ZeroDivisionError"):
        attlas.explain_to(classifier, TEXTS, f"disk://{tmp_path}/scores.parquet", METHOD)
