"""A file of scores as pandas, Polars and DuckDB read it, by the guide's own lines."""

import json
import re
from pathlib import Path

import pyarrow.dataset as dataset
import pytest
from pyarrow import parquet

import attlas
from attlas.errors import UsageError
from attlas.explaining import score_parts

GUIDE = Path(__file__).parents[2] / "docs" / "guides" / "many_texts.md"
TEXTS = ["so good", "", "a warm and funny film"]
# What version 1 of the columns is: a change of these lines needs another version.
COLUMNS = {
    **{"row": "int64", "text": "string", "pair": "string", "true_label": "string"},
    **{"predicted": "string", "probability": "double", "target": "string", "position": "int32"},
    **{"quantity": "string", "value": "double", "tokens": "list<element: string>"},
    **{"scores": "list<element: float>", "special": "list<element: bool>"},
    **{"segments": "list<element: string>", "starts": "list<element: int32>"},
    **{"ends": "list<element: int32>", "warning": "string", "notes": "list<element: string>"},
    **{"licence": "string", "problem": "string"},
}


@pytest.fixture
def written(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    subject = attlas.load("shortcut_token")
    attlas.explain_to(subject, TEXTS, "scores.parquet", "raw_attention")
    return tmp_path / "scores.parquet"


@pytest.fixture
def expected(written):
    """A line for each token, read from the file by pyarrow alone."""
    rows = parquet.read_table(written).to_pylist()
    return [
        (row["row"], *pair)
        for row in rows
        if row["problem"] is None
        for pair in zip(row["tokens"], row["scores"], strict=True)
    ]


def block_of(package):
    """The lines of the guide that read the file by this package."""
    blocks = re.findall(r"```python\n(.*?)```", GUIDE.read_text("utf-8"), flags=re.DOTALL)
    (found,) = [each for each in blocks if f"import {package}" in each]
    return found


def run(package):
    names = {}
    exec(block_of(package), names)
    return names


def test_pandas(expected):
    names = run("pandas")
    found = names["tokens"].dropna(subset="token")
    assert list(found.itertuples(index=False, name=None)) == expected
    assert names["version"] == 1 and names["settings"]["method"] == "raw_attention"
    assert names["problems"].row.tolist() == [1]


def test_polars(expected):
    pytest.importorskip("polars")
    assert run("polars")["tokens"].rows() == expected


def test_duckdb(expected):
    pytest.importorskip("duckdb")
    names = run("duckdb")
    assert names["tokens"].fetchall() == expected
    assert json.loads(names["version"]) == 1


def test_the_columns_are_those_of_their_version(written):
    assert score_parts.FORMAT == 1
    found = parquet.read_schema(written)
    assert {name: str(found.field(name).type) for name in found.names} == COLUMNS


def test_a_file_of_another_version_is_refused_by_name(written):
    table = parquet.read_table(written)
    about = json.loads(table.schema.metadata[b"attlas"]) | {"format": 2}
    told = {**table.schema.metadata, b"attlas": json.dumps(about).encode()}
    parquet.write_table(table.replace_schema_metadata(told), written)
    subject = attlas.load("shortcut_token")
    with pytest.raises(UsageError, match="columns of version 2, and this is version 1"):
        attlas.explain_to(subject, TEXTS, written, "raw_attention")


def test_several_files_are_one_data_set(written, tmp_path):
    duckdb = pytest.importorskip("duckdb")
    subject = attlas.load("shortcut_token")
    attlas.explain_to(subject, ["one more"], tmp_path / "more.parquet", "raw_attention")
    files = f"{tmp_path}/*.parquet"
    ((count,),) = duckdb.sql(f"SELECT count(*) FROM '{files}'").fetchall()
    assert count == len(TEXTS) + 1 == len(dataset.dataset(tmp_path).to_table())
    read = attlas.read_examples(files, text="text")
    assert "one more" in [each.text for each in read.examples]
