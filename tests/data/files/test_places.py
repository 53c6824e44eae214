"""Data in several files, in Arrow files, and at addresses."""

import gzip
import io
import json
import zipfile

import fsspec
import pandas as pd
import pyarrow as pa
import pytest
from pyarrow import feather, ipc, parquet

from attlas.data.read_examples import check_data, read_examples
from attlas.data.sources import read_rows
from attlas.errors import UsageError

ROWS = [
    {"text": f"film {number}", "label": f"l{number % 2}", "other": number} for number in range(9)
]
TABLE = pa.Table.from_pylist(ROWS)
TEXTS = [row["text"] for row in ROWS]


def texts(source, **given):
    return [each.text for each in read_examples(source, **given).examples]


def write_stream(path, table=TABLE):
    with ipc.new_stream(str(path), table.schema) as stream:
        stream.write_table(table, max_chunksize=4)


def write_file(path):
    with ipc.new_file(str(path), TABLE.schema) as file:
        file.write_table(TABLE, max_chunksize=4)


@pytest.mark.parametrize(
    ("name", "write"),
    [
        ("a.arrow", write_stream),
        ("b.arrow", write_file),
        ("c.feather", lambda path: feather.write_feather(TABLE, str(path))),
    ],
)
def test_arrow_files_and_streams(tmp_path, name, write):
    write(tmp_path / name)
    read = read_examples(tmp_path / name)
    assert [each.text for each in read.examples] == TEXTS
    assert [each.label for each in read.examples] == [row["label"] for row in ROWS]
    assert [row.example.text for row in read_rows(tmp_path / name)] == TEXTS
    check_data(tmp_path / name, text="text")
    with pytest.raises(UsageError, match="other"):
        check_data(tmp_path / name, text="review")


def test_places_beyond_the_end_of_an_arrow_file_are_not_read(tmp_path):
    path = tmp_path / "a.feather"
    feather.write_feather(TABLE.select(["text"]), str(path), compression="uncompressed")
    places = TABLE["text"].chunk(0).buffers()[1].to_pybytes()[: 4 * (len(ROWS) + 1)]
    assert path.read_bytes().count(places) == 1
    beyond = (len("film 0") * len(ROWS) + 400).to_bytes(4, "little")
    path.write_bytes(path.read_bytes().replace(places, places[:-4] + beyond))
    with pytest.raises(UsageError, match="after row 0, cannot be read") as caught:
        read_examples(path)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("name", ["a.parquet", "a.feather", "a.arrow"])
def test_two_columns_of_one_name_are_refused(tmp_path, name):
    twice = pa.Table.from_arrays([pa.array(["a"]), pa.array(["b"])], ["text", "text"])
    if name == "a.parquet":
        parquet.write_table(twice, tmp_path / name)
    else:
        write_stream(tmp_path / name, twice)
    with pytest.raises(UsageError, match="more than one column 'text'"):
        read_examples(tmp_path / name)


def test_what_is_no_arrow_is_one_line(tmp_path):
    (tmp_path / "a.arrow").write_bytes(b"text\nno arrow\n")
    with pytest.raises(UsageError, match="cannot be read as Arrow") as caught:
        read_examples(tmp_path / "a.arrow")
    assert "\n" not in str(caught.value)


@pytest.fixture
def folder(tmp_path):
    """A folder as Spark and others write it, with parts in folders by label."""
    for number, start in enumerate((0, 3, 6)):
        part = tmp_path / "data" / f"part-{number}.parquet"
        part.parent.mkdir(exist_ok=True)
        parquet.write_table(TABLE.slice(start, 3), part)
    (tmp_path / "data" / "_SUCCESS").write_text("")
    (tmp_path / "data" / ".part-0.parquet.crc").write_text("damaged")
    return tmp_path / "data"


def test_a_folder_and_a_pattern_are_all_their_files_in_order(folder):
    assert texts(folder) == texts(f"{folder}/") == texts(f"{folder}/*.parquet") == TEXTS
    assert texts(f"{folder}/part-[12].parquet") == TEXTS[3:]
    assert texts(folder, count=4, seed=1) == texts(folder, count=4, seed=1)
    rows = read_rows(folder)
    assert [row.number for row in rows] == list(range(9)) and len(rows) == 9
    read = read_examples(folder)
    assert read.examples[4].fields["row"] == "part-1.parquet, 2" and read.total == 9


def test_parts_may_be_of_any_one_kind(tmp_path):
    lines = [json.dumps(row) for row in ROWS]
    (tmp_path / "a.jsonl").write_text("\n".join(lines[:4]))
    (tmp_path / "b.jsonl.gz").write_bytes(gzip.compress("\n".join(lines[4:]).encode()))
    assert texts(tmp_path) == TEXTS
    (tmp_path / "c.csv").write_text("text\nmore\n")
    with pytest.raises(UsageError, match=r"several kinds \(\.csv, \.jsonl\): choose one"):
        read_examples(tmp_path)
    assert texts(f"{tmp_path}/*.csv") == ["more"]


def test_folders_named_after_values_are_columns(tmp_path):
    for label in ("good", "very%20bad"):
        place = tmp_path / f"label={label}"
        place.mkdir()
        parquet.write_table(pa.table({"text": [f"a {label} film"]}), place / "0.parquet")
    found = read_examples(tmp_path)
    assert [each.label for each in found.examples] == ["good", "very bad"]


def test_a_part_without_the_column_is_named(folder):
    parquet.write_table(pa.table({"body": ["x"]}), folder / "part-9.parquet")
    with pytest.raises(UsageError, match=r"part-9\.parquet has no column 'text'"):
        read_examples(folder)


def test_a_saved_dataset_and_its_splits(tmp_path):
    for split in ("train", "test"):
        (tmp_path / split).mkdir()
        write_stream(
            tmp_path / split / "data-00000-of-00001.arrow", TABLE.slice(split == "test", 2)
        )
        (tmp_path / split / "state.json").write_text("{}")
        (tmp_path / split / "dataset_info.json").write_text("{}")
    (tmp_path / "dataset_dict.json").write_text('{"splits": ["train", "test"]}')
    assert texts(tmp_path, split="test") == TEXTS[1:3]
    with pytest.raises(UsageError, match="it has test, train"):
        read_examples(tmp_path, split="dev")


def test_nothing_there_is_one_line(tmp_path):
    for source in (tmp_path, f"{tmp_path}/*.parquet", "memory://nothing-here/*.parquet"):
        with pytest.raises(UsageError, match="has no file of data"):
            read_examples(source)
    for address in ("memory://nothing.jsonl", f"file://{tmp_path}/nothing.parquet"):
        with pytest.raises(UsageError, match="there is no file"):
            read_examples(address)
    with pytest.raises(UsageError, match="cannot be opened") as caught:
        read_examples("nosuchstore://bucket/a.parquet")
    assert "\n" not in str(caught.value)


@pytest.fixture
def store():
    """Fsspec's store in memory, with a folder of parts and single files."""
    system = fsspec.filesystem("memory")
    for number, start in enumerate((0, 3, 6)):
        with system.open(f"/bucket/parts/{number}.parquet", "wb") as file:
            parquet.write_table(TABLE.slice(start, 3), file)
    frame = pd.DataFrame(ROWS)
    system.pipe("/bucket/a.csv", frame.to_csv(index=False).encode())
    lines = frame.to_json(orient="records", lines=True).encode()
    system.pipe("/bucket/a.jsonl", lines)
    system.pipe("/bucket/a.jsonl.gz", gzip.compress(lines))
    system.pipe("/bucket/a.json", frame.to_json(orient="records").encode())
    with system.open("/bucket/a.arrow", "wb") as file, ipc.new_stream(file, TABLE.schema) as stream:
        stream.write_table(TABLE)
    yield system
    system.rm("/bucket", recursive=True)


@pytest.mark.parametrize(
    "name", ["a.csv", "a.jsonl", "a.jsonl.gz", "a.json", "a.arrow", "parts", "parts/*.parquet"]
)
def test_an_address_is_read_as_a_file_is(store, name):
    address = f"memory://bucket/{name}"
    assert texts(address) == TEXTS
    assert [row.example.text for row in read_rows(address)] == TEXTS
    check_data(address)


@pytest.mark.parametrize(
    "name",
    [
        *("simplecache::memory://bucket/a.csv", "simplecache::memory://bucket/parts"),
        *("zip://in/a.csv::memory://bucket/a.zip", "zip://in::memory://bucket/a.zip"),
        *("zip://in/*.csv::memory://bucket/a.zip", "simplecache::zip://in::memory://bucket/a.zip"),
    ],
)
def test_a_chain_of_addresses(store, name):
    whole = io.BytesIO()
    with zipfile.ZipFile(whole, "w") as archive:
        archive.writestr("in/a.csv", store.cat("/bucket/a.csv"))
        archive.writestr("in/notes.txt", "of a writer")
    store.pipe("/bucket/a.zip", whole.getvalue())
    assert texts(name) == TEXTS


def test_files_of_several_kinds_are_told_with_a_pattern_that_works(store):
    store.pipe("/bucket/parts/a.csv", b"text")
    for name in ("memory://bucket/parts", "simplecache::memory://bucket/parts/"):
        with pytest.raises(UsageError, match="several kinds") as caught:
            read_examples(name)
        pattern = str(caught.value).split("such as ")[1].replace(".csv", ".parquet")
        assert texts(pattern) == TEXTS


def test_a_file_by_its_address(folder):
    assert texts(f"file://{folder}/part-1.parquet") == TEXTS[3:6]
    assert texts(f"file://{folder}") == TEXTS


def test_a_store_that_breaks_off_is_one_line(store, monkeypatch):
    class Broken(Exception):
        """An error that only this store has."""

    class Cut:
        def __init__(self, inner):
            self.inner, self.count = inner, 0

        def __getattr__(self, name):
            return getattr(self.inner, name)

        def read(self, *given):
            raise Broken("the line\nwas cut")

        read1 = readinto = read

        def __enter__(self):
            return self

        def __exit__(self, *_):
            self.inner.close()

    real = type(store).open
    monkeypatch.setattr(type(store), "open", lambda *given, **named: Cut(real(*given, **named)))
    for name in ("a.csv", "a.jsonl", "a.arrow", "parts"):
        with pytest.raises(UsageError, match="cannot be") as caught:
            read_examples(f"memory://bucket/{name}")
        assert "\n" not in str(caught.value)


class Streamed:
    """What a Dataset that streams looks like: no length, read anew by each `iter`."""

    column_names = None

    def __iter__(self):
        return iter(ROWS)


def test_a_dataset_that_streams():
    assert texts(Streamed()) == TEXTS and texts({"train": Streamed()}["train"]) == TEXTS
    assert [row.example.text for row in read_rows(Streamed())] == TEXTS


def test_datasets_of_the_library_itself(tmp_path):
    datasets = pytest.importorskip("datasets")
    whole = datasets.Dataset.from_list(ROWS)
    assert texts(whole) == texts(whole.to_iterable_dataset()) == TEXTS
    assert texts(datasets.IterableDatasetDict({"test": whole.to_iterable_dataset()})) == TEXTS
    whole.save_to_disk(tmp_path / "saved")
    assert texts(tmp_path / "saved") == TEXTS
