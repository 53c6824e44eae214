"""Files that are not what their name says, and names that mean two things."""

import gzip
import os
import warnings
from decimal import Decimal

import fsspec
import pyarrow as pa
import pytest
from pyarrow import parquet

from attlas.data.read_examples import read_examples
from attlas.data.sources import read_rows
from attlas.errors import UsageError

CSV = b"text,label\nso good,POS\nso bad,NEG\n"


def texts(source, **given):
    return [each.text for each in read_examples(source, **given).examples]


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no named pipes")
@pytest.mark.parametrize("ending", ["csv", "jsonl", "json", "parquet", "arrow", "csv.gz"])
def test_a_pipe_is_refused_and_not_waited_for(tmp_path, ending):
    os.mkfifo(tmp_path / f"a.{ending}")
    for read in (read_examples, read_rows):
        with pytest.raises(UsageError, match="is no plain file"):
            read(tmp_path / f"a.{ending}")


def test_the_home_of_nobody_is_a_file_that_is_not_there():
    for read in (read_examples, read_rows):
        with pytest.raises(UsageError, match="cannot be read: No such file"):
            read("~nobody-of-this-name/a.csv")


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be", "utf-32"])
def test_text_of_two_bytes_without_a_mark_is_named(tmp_path, encoding):
    for name in ("a.csv", "a.tsv", "a.jsonl"):
        (tmp_path / name).write_bytes(CSV.decode().encode(encoding))
        with pytest.raises(UsageError, match="has zero bytes in its first line: save it as UTF-8"):
            read_examples(tmp_path / name)


def test_of_two_names_that_differ_in_case_the_usual_one_is_taken(tmp_path):
    for first, second, wanted in (
        *(("text", "Text", "one"), ("Text", "text", "two"), ("TEXT", "Text", "one")),
        ("text ", "Text", "one"),
    ):
        parquet.write_table(pa.table({first: ["one"], second: ["two"]}), tmp_path / "a.parquet")
        assert texts(tmp_path / "a.parquet") == [wanted]


def test_a_decimal_number_is_a_label(tmp_path):
    labels = [Decimal("1.00"), Decimal("2.50"), None, Decimal("-3.00")]
    table = pa.table({"text": ["a", "b", "c", "d"], "label": pa.array(labels, pa.decimal128(9, 2))})
    parquet.write_table(table, tmp_path / "a.parquet")
    read = read_examples(tmp_path / "a.parquet")
    assert [each.label for each in read.examples] == ["1", "2.50", None, "-3"]


def test_the_pattern_that_is_proposed_is_one(tmp_path):
    for name in ("a.csv", "b.jsonl", "in/c.csv"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(CSV)
    for name, wanted in (("", "/*"), ("/", "/*"), ("/*", "/*"), ("/**/*", "/**/*")):
        with pytest.raises(UsageError, match="several kinds") as caught:
            read_examples(f"{tmp_path}{name}")
        assert str(caught.value).endswith(f"such as {tmp_path}{wanted}.csv")


def test_what_was_opened_at_an_address_is_closed(tmp_path):
    (tmp_path / "a.csv.gz").write_bytes(gzip.compress(CSV))
    parquet.write_table(pa.table({"text": ["one"]}), tmp_path / "a.parquet")
    assert fsspec.filesystem("simplecache", target_protocol="file")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert texts(f"simplecache::file://{tmp_path}/a.csv.gz") == ["so good", "so bad"]
        assert texts(f"simplecache::file://{tmp_path}/a.parquet") == ["one"]
