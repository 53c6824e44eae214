"""Tables of other libraries as data."""

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from attlas.data.read_examples import read_examples
from attlas.data.sources import read_rows
from attlas.errors import UsageError

ROWS = {"text": ["so good", "so bad", "fine"], "label": [1, 0, None], "other": [0, 1, 2]}
TABLES = {
    "polars": lambda: pl.DataFrame(ROWS),
    "arrow": lambda: pa.table(ROWS),
    "a batch": lambda: pa.RecordBatch.from_pydict(ROWS),
    "duckdb": lambda: duckdb.from_arrow(pa.table(ROWS)),
}


@pytest.mark.parametrize("name", TABLES)
def test_a_table_is_read_like_a_dataframe(name):
    table = TABLES[name]()
    read, known = read_examples(table), read_examples(pd.DataFrame(ROWS))
    assert [each.text for each in read.examples] == ROWS["text"]
    assert [each.label for each in read.examples] == [each.label for each in known.examples]
    assert [each.fields["row"] for each in read.examples] == [1, 2, 3]
    assert [row.example.text for row in read_rows(table)] == ROWS["text"]
    with pytest.raises(UsageError, match="split="):
        read_examples(table, split="test")


@pytest.mark.parametrize("kind", [pl.Series, pd.Series])
def test_one_column_is_a_list(kind):
    assert [each.text for each in read_examples(kind(ROWS["text"])).examples] == ROWS["text"]
