"""Rows of data, one by one: every row is there, and they can be read again."""

import json

import pandas as pd
import pytest

from attlas.data.read_examples import check_data
from attlas.data.sources import read_rows
from attlas.errors import UsageError

RECORDS = [
    {"text": "one", "label": "a"},
    {"text": "", "label": "a"},
    {"text": "one", "label": "b"},
    {"text": "four", "label": None},
]


@pytest.fixture
def places(tmp_path):
    frame = pd.DataFrame(RECORDS)
    frame.to_csv(tmp_path / "rows.csv", index=False)
    frame.to_csv(tmp_path / "rows.tsv", index=False, sep="\t")
    frame.to_parquet(tmp_path / "rows.parquet", row_group_size=2)
    lines = "\n".join(json.dumps(each) for each in RECORDS)
    (tmp_path / "rows.jsonl").write_text(lines)
    (tmp_path / "rows.json").write_text(json.dumps(RECORDS))
    files = [tmp_path / f"rows.{kind}" for kind in ("csv", "tsv", "parquet", "jsonl", "json")]
    return [*files, frame, RECORDS]


def test_every_source_gives_every_row_twice_over(places):
    fingerprints = set()
    for place in places:
        rows = read_rows(place)
        found = [(row.number, row.example and row.example.text, row.problem) for row in rows]
        assert found == [(0, "one", ""), (1, None, "no text"), (2, "one", ""), (3, "four", "")]
        assert [row.example.label for row in rows if row.example] == ["a", "b", None]
        assert len(rows) == rows.total == 4
        fingerprints.add(rows.fingerprint)
    assert len(fingerprints) == 1


def test_another_label_is_other_data():
    assert read_rows([("a", "x")]).fingerprint != read_rows([("a", "y")]).fingerprint


def test_a_sample_keeps_the_numbers_and_the_order():
    texts = [f"text {number}" for number in range(50)]
    rows = read_rows(texts, count=5, seed=1)
    numbers = [row.number for row in rows]
    assert len(rows) == len(numbers) == 5 and numbers == sorted(numbers)
    assert all(row.example.text == texts[row.number] for row in rows)
    assert rows.fingerprint != read_rows(texts, count=5, seed=2).fingerprint
    assert len(read_rows("reviews", count=7)) == 7


def test_a_broken_line_is_a_row_with_a_problem(tmp_path):
    (tmp_path / "rows.jsonl").write_text('{"text": "a"}\n{"text\n{"text": "b"}\n')
    rows = list(read_rows(tmp_path / "rows.jsonl"))
    assert [row.problem for row in rows] == ["", "not JSON", ""]


@pytest.mark.parametrize(
    ("source", "problem"),
    [
        (iter(["a"]), "an iterator can be read only once"),
        (["", None], "a list has no usable row: no text"),
        ([], "a list has no usable row: it is empty"),
    ],
)
def test_what_cannot_be_read_row_by_row_is_told(source, problem):
    with pytest.raises(UsageError, match=problem):
        read_rows(source)


@pytest.mark.parametrize("name", ["a\0b/c", "x" * 5000, "a/" + "b" * 5000, "\udcff"])
def test_a_name_that_no_file_has_is_refused_before_any_work(name):
    with pytest.raises(UsageError) as told:
        check_data(name)
        read_rows(name)
    assert "\n" not in str(told.value) and len(str(told.value)) < 1500
