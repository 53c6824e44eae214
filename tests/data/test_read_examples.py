"""read_examples: every kind of table gives the Examples that stand in it, and says what it left."""

import csv
import gzip
import json
import pickle
import sys
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from pyarrow import parquet

from attlas.data import Example, texts
from attlas.data.read_examples import read_examples
from attlas.data.sources import read_rows
from attlas.errors import UnknownNameError, UsageError

RECORDS = [
    {"review": "A fine film.", "stars": 1},
    {"review": 'He said "no",\nand left; 100\tpages.', "stars": 0},
    {"review": "Ça alors 🎬", "stars": 1},
]
EXPECTED = [(record["review"], str(record["stars"])) for record in RECORDS]


def write(path, content):
    data = content if isinstance(content, bytes) else content.encode()
    path.write_bytes(gzip.compress(data) if path.suffix == ".gz" else data)
    return path


def found(read):
    return [(each.text, each.label) for each in read.examples]


def reasons(read):
    return [(each.row, each.reason) for each in read.left_out]


def as_delimited(mark):
    frame = pd.DataFrame(RECORDS)
    return frame.to_csv(index=False, sep=mark)


KINDS = {
    "a.csv": lambda: as_delimited(","),
    "a.CSV": lambda: as_delimited(","),
    "semicolons.csv": lambda: as_delimited(";"),
    "packed.csv.gz": lambda: as_delimited(","),
    "bom.csv": lambda: b"\xef\xbb\xbf" + as_delimited(",").encode(),
    "wide.csv": lambda: as_delimited("\t").encode("utf-16"),
    "a.tsv": lambda: as_delimited("\t"),
    "a.jsonl": lambda: "\n\n".join(map(json.dumps, RECORDS)),
    "a.jsonl.gz": lambda: "\n".join(map(json.dumps, RECORDS)),
    "list.json": lambda: json.dumps(RECORDS, indent=1),
    "lines.json": lambda: "\n".join(map(json.dumps, RECORDS)),
    "columns.json": lambda: pd.DataFrame(RECORDS).to_json(),
    "lists.json": lambda: json.dumps(pd.DataFrame(RECORDS).to_dict(orient="list")),
    "held.json": lambda: json.dumps({"data": RECORDS}),
}


@pytest.mark.parametrize("name", KINDS)
def test_every_kind_of_file_gives_the_same(name, tmp_path):
    path = write(tmp_path / name, KINDS[name]())
    read = read_examples(path)
    assert found(read) == EXPECTED
    assert (read.left_out, read.source) == ([], str(path))
    assert read.columns == {"text": "review", "label": "stars"}


def test_parquet_and_a_frame(tmp_path):
    frame = pd.DataFrame(RECORDS).assign(other=[b"1", b"2", b"3"])
    frame.to_parquet(tmp_path / "a.parquet")
    assert found(read_examples(str(tmp_path / "a.parquet"))) == EXPECTED
    assert found(read_examples(frame)) == EXPECTED


def test_labels_of_a_frame_with_gaps_are_whole_numbers():
    frame = pd.DataFrame({"text": ["a", None, "c", "d"], "label": [1, 0, None, 2.5]})
    read = read_examples(frame.set_index(pd.Index(["k", "l", "m", "n"])))
    assert found(read) == [("a", "1"), ("c", None), ("d", "2.5")]
    assert reasons(read) == [("l", "no text")]
    assert [each.fields for each in read.examples] == [{"row": "k"}, {"row": "m"}, {"row": "n"}]


def test_labels_written_as_floats(tmp_path):
    path = write(tmp_path / "a.csv", "text,label\na,1.0\nb,-1.00\nc,0.5\nd,v1.0\ne,\n")
    assert [each.label for each in read_examples(path).examples] == ["1", "-1", "0.5", "v1.0", None]


def test_a_list_of_all_that_may_stand_in_one():
    own = Example("d", "X", ((0, 1),), {"kind": "plain"})
    given = ["a", ("b", np.int64(1)), (("p", "q"), True), own, {"text": "e", "label": "no"}, 7]
    read = read_examples(given)
    assert found(read) == [
        ("a", None), ("b", "1"), (("p", "q"), "True"), ("d", "X"), ("e", "no"), ("7", None),
    ]  # fmt: skip
    assert read.examples[3] is own


def test_a_list_says_what_it_cannot_use():
    read = read_examples(["a", "", None, "  ", ["x", "y", "z"], {"text": ["a"]}, {}, object()])
    assert found(read) == [("a", None)]
    assert [row for row, _ in reasons(read)] == [1, 2, 3, 4, 5, 6, 7]
    assert reasons(read)[4] == (5, "the text is of type list")


def test_a_generator_is_a_list():
    assert found(read_examples(each for each in ["a", "b"])) == [("a", None), ("b", None)]


def test_repeated_texts_are_left_out():
    read = read_examples([("a", 1), ("b", 0), ("a", 0), (("a", "b"), 1)])
    assert found(read) == [("a", "1"), ("b", "0"), (("a", "b"), "1")]
    assert reasons(read) == [(2, "the text was there before")]
    assert "1 left out: the text was there before" in read.notes()


def test_broken_rows_of_csv_are_listed_by_their_line(tmp_path):
    lines = [
        "text,label",
        '"two\nlines",1',
        "a comma, too many,1",
        '"quote"d,1',
        "",
        ",0",
        "fine,0",
        "short",
        "123,1",
    ]
    read = read_examples(write(tmp_path / "a.csv", "\r\n".join(lines)))
    assert found(read) == [("two\nlines", "1"), ("fine", "0"), ("123", "1")]
    assert [row for row, _ in reasons(read)] == [4, 5, 7, 9]
    assert "3 for 2 columns" in read.left_out[0].shown
    assert "wrong quotes" in read.left_out[1].reason


def test_a_quote_that_is_never_closed_is_said(tmp_path):
    read = read_examples(write(tmp_path / "a.csv", 'text,label\na,1\n"b,0\nc,1\nd,0\n'))
    assert found(read) == [("a", "1")]
    assert [row for row, _ in reasons(read)] == [3]
    assert "never closed" in read.left_out[0].reason


def test_tabs_without_regard_to_quotes(tmp_path):
    rows = 'sentence\tlabel\n"open\t1\nclose"\t0\n"both"\t1\n\t0\none\ttwo\tthree\n'
    read = read_examples(write(tmp_path / "a.tsv", rows))
    assert found(read) == [('"open', "1"), ('close"', "0"), ("both", "1")]
    assert [row for row, _ in reasons(read)] == [5, 6]


def test_one_column_needs_no_quotes(tmp_path):
    read = read_examples(write(tmp_path / "a.csv", "whatever\nGood, really, good.\nBad.\n"))
    assert found(read) == [("Good, really, good.", None), ("Bad.", None)]


def test_a_very_long_field_and_the_limit_of_others(tmp_path):
    before = csv.field_size_limit()
    long = "word " * 60_000
    read = read_examples(write(tmp_path / "a.csv", f'text,label\n"{long}",1\n'))
    assert read.examples[0].text == long
    assert csv.field_size_limit() == before


def test_broken_lines_of_json(tmp_path):
    lines = ['{"text": "a"}', '{"text": "b"', "[1]", '"c"', '{"text": NaN}', '{"text": "\\ud800"}']
    read = read_examples(write(tmp_path / "a.jsonl", "\n".join(lines)))
    assert found(read) == [("a", None), ("c", None)]
    assert [row for row, _ in reasons(read)] == [2, 3, 5, 6]
    assert read.left_out[0].reason == "not JSON"
    assert json.dumps(read.left_out[3].shown).encode()


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.csv", "", "no first line"),
        ("a.csv", "text,label\n", "has no rows"),
        ("a.csv", "text,text\na,b\n", "more than one column 'text'"),
        ("a.csv", "text,label\n,1\n ,0\n", r"no usable row: 2 × no text"),
        ("a.csv", "one,two,three\na,b,c\n", "which column is the text.*one, two, three"),
        ("a.csv", "text\nok\ncaf\xe9\n".encode("latin-1"), "not UTF-8.*line 3"),
        ("a.jsonl", b"\xff\xfet\x00e", "not UTF-16"),
        ("a.jsonl", "", "has no rows"),
        ("a.json", "[1, 2", "is not JSON"),
        ("a.json", "3", "list of records"),
        ("a.json", '{"text": ["a"], "label": [1, 2]}', "differ in length"),
        ("a.json", '["", "  "]', "no usable row"),
        ("a.parquet", b"PAR1 nothing", "cannot be read as Parquet"),
        ("a.xlsx", b"PK", "an unknown kind"),
        ("a.pkl", pickle.dumps([]), "an unknown kind"),
    ],
)
def test_one_clear_error_for_a_file(name, content, message, tmp_path):
    with pytest.raises(UsageError, match=message):
        read_examples(write(tmp_path / name, content))


def test_files_that_are_not_there_or_cut(tmp_path):
    with pytest.raises(UsageError, match="No such file"):
        read_examples(tmp_path / "no.csv")
    with pytest.raises(UsageError, match="cannot be read"):
        read_examples(tmp_path / "no.parquet")
    with pytest.raises(UsageError, match="has no file of data"):
        read_examples(tmp_path)
    cut = tmp_path / "cut.csv.gz"
    cut.write_bytes(gzip.compress(b"text\n" + bytes(range(97, 110)) * 999)[:-20])
    with pytest.raises(UsageError, match="cannot be read"):
        read_examples(cut)


def test_columns_that_are_asked_for():
    records = [{"title": "t", "body": "b", "mood": "good", "label": 3}]
    assert found(read_examples(records)) == [("b", "3")]
    assert found(read_examples(records, text="title", label="mood")) == [("t", "good")]
    assert found(read_examples(records, text="title", pair="body")) == [(("t", "b"), "3")]
    with pytest.raises(UnknownNameError, match=r"unknown column 'mod'.*'mood'.*title, body"):
        read_examples(records, label="mod")
    with pytest.raises(UsageError, match=r"name the first too \(text=, --text\)"):
        read_examples(records, pair="body")


@pytest.mark.parametrize(
    ("columns", "expected"),
    [
        (["Premise", "Hypothesis", "gold_label"], ("Premise", "Hypothesis", "gold_label")),
        (["question", "sentence", "label"], ("question", "sentence", "label")),
        (["sentence", "idx", "label"], ("sentence", None, "label")),
        (["was gesagt wurde", "class"], ("was gesagt wurde", None, "class")),
        (["title", "text"], ("text", None, None)),
    ],
)
def test_columns_by_their_usual_names(columns, expected):
    read = read_examples(pd.DataFrame([[name.upper() for name in columns]], columns=columns))
    assert tuple(map(read.columns.get, ("text", "pair", "label"))) == expected


def test_clusters_are_kept():
    records = [{"text": "a", "group": 4.0}, {"text": "b", "group": None}]
    read = read_examples(records)
    assert [each.fields.get("cluster") for each in read.examples] == ["4", None]


@pytest.mark.parametrize(
    ("cell", "words"),
    [
        ([[0, 4], [13, 16]], ["good", "end"]),
        ("[[13, 16], [0, 4]]", ["good", "end"]),
        (["good", "an end"], ["good", "an end"]),
        ("with an", ["with an"]),
        ([1, 0, 0, 1], ["good", "end"]),
        (np.array([0, 1, 1, 0]), ["with an"]),
        ([{"text": "n", "start": 11}], ["n"]),
        (None, []),
        ("[]", []),
    ],
)
def test_spans_in_every_form(cell, words):
    record = {"text": "good with an end", "marks": cell}
    spans = read_examples([record], spans="marks").examples[0].spans
    assert [record["text"][start:end] for start, end in spans] == words


@pytest.mark.parametrize("cell", [[[0, 99]], ["absent"], "[1, 0", [1], 5, [[1]], ["d"]])
def test_spans_that_cannot_be_read(cell):
    records = [{"text": "fine", "m": None}, {"text": "odd and dull", "m": cell}]
    read = read_examples(records, spans="m")
    assert found(read) == [("fine", None)]
    assert reasons(read) == [(1, "the spans cannot be read")]


def test_spans_of_a_pair_are_in_its_second_part():
    record = {"premise": "a dog", "hypothesis": "no dog", "m": ["dog"]}
    assert read_examples([record], spans="m").examples[0].spans == ((3, 6),)


def test_how_many_rows_there_were_to_draw_from_is_known():
    rows = ["one text", "", "another text", "a third text", "one text"]
    read = read_examples(rows, count=2)
    assert (len(read.examples), read.total) == (2, 3)
    assert read_examples(rows).total == 3
    assert read_examples(read, count=1).total == 2
    assert read_examples("reviews", count=3).total == len(read_examples("reviews").examples)
    assert read_examples("recall", count=3).total is None  # as many as are asked for


def test_a_sample_is_of_the_usable_rows_and_uniform():
    given = [text for i in range(8) for text in (str(i), "")]
    drawn = np.zeros(8)
    for seed in range(400):
        read = read_examples(given, count=2, seed=seed)
        assert len(read.examples) == 2
        assert len(read.left_out) == 8
        for each in read.examples:
            drawn[int(each.text)] += 1
    # 400 draws of 2 in 8: 100 each, standard deviation 8.7
    assert abs(drawn - 100).max() < 4 * 8.7
    assert found(read_examples(given, count=3, seed=5)) == found(
        read_examples(given, count=3, seed=5)
    )
    order = [int(each.text) for each in read_examples(given, count=6, seed=1).examples]
    assert order == sorted(order)
    assert read_examples(given, count=0).examples == []
    with pytest.raises(UsageError, match="0 or more"):
        read_examples(given, count=-1)


def test_splits_of_a_json_file(tmp_path):
    path = write(
        tmp_path / "a.json", json.dumps({"train": [{"text": "a"}], "test": [{"text": "b"}]})
    )
    assert found(read_examples(path)) == [("b", None)]
    assert found(read_examples(path, split="train")) == [("a", None)]
    with pytest.raises(UsageError, match=r"no split 'dev'.*train, test"):
        read_examples(path, split="dev")
    with pytest.raises(UsageError, match="no splits"):
        read_examples(write(tmp_path / "b.json", '["a"]'), split="dev")
    with pytest.raises(UsageError, match="no splits"):
        read_examples(write(tmp_path / "b.csv", "text\na\n"), split="dev")
    with pytest.raises(UsageError, match="not for a list or a DataFrame"):
        read_examples(["a"], split="dev")


def test_named_sets():
    read = read_examples("reviews", count=5, seed=2)
    assert read.examples == texts("reviews", count=5, seed=2)
    assert (read.source, read.left_out, read.columns) == ("reviews", [], {})
    with pytest.raises(UsageError, match="a named set"):
        read_examples("reviews", label="kind")
    with pytest.raises(UnknownNameError, match="unknown set of texts"):
        read_examples("revues")


def test_the_hub(monkeypatch):
    asked = []

    def load_dataset(path, config, split):
        asked.append((path, config, split))
        return [{"sentence": "a", "label": 1}, {"sentence": "", "label": 0}]

    monkeypatch.setitem(sys.modules, "datasets", SimpleNamespace(load_dataset=load_dataset))
    read = read_examples("owner/name:part", split="dev")
    assert found(read) == [("a", "1")]
    assert reasons(read) == [(2, "no text")]
    read_examples("owner/name")
    assert asked == [("owner/name", "part", "validation"), ("owner/name", None, "test")]
    monkeypatch.setitem(sys.modules, "datasets", None)
    with pytest.raises(UsageError, match="`datasets` is not installed"):
        read_examples("owner/name")


@pytest.mark.parametrize("source", [3, None, {"text": ["a"]}, b"a,b"])
def test_what_is_no_data(source):
    with pytest.raises(UsageError, match="a DataFrame, a Dataset or a list"):
        read_examples(source)


def test_the_fingerprint_is_of_what_counts():
    def of(*items):
        return read_examples(list(items)).fingerprint

    assert of(("a", 1), "b") == of({"text": "a", "label": 1.0}, "b")
    different = {of("a", "b"), of("b", "a"), of(("a", 1), "b"), of(("a", "b")), of(Example("a"))}
    assert len(different) == 5
    marked = Example("a", None, ((0, 1),))
    assert of(marked) != of(Example("a"))


# Conversations

TALK = [{"role": "user", "content": "Is it far?"}, {"role": "assistant", "content": "No."}]
OTHER = [{"role": "user", "content": "Where?"}]


@pytest.mark.parametrize("name", ["a.jsonl", "a.json"])
def test_a_column_of_messages_is_read(tmp_path, name):
    records = [{"messages": TALK, "label": "yes"}, {"messages": OTHER, "label": "no"}]
    lines = "\n".join(map(json.dumps, records))
    path = write(tmp_path / name, lines if name == "a.jsonl" else json.dumps(records))
    assert found(read_examples(path)) == [(TALK, "yes"), (OTHER, "no")]


def test_messages_come_with_their_tools():
    (example,) = read_examples([{"messages": TALK, "tools": [{"name": "bus"}]}]).examples
    assert example.text == {"messages": TALK, "tools": [{"name": "bus"}]}


@pytest.mark.parametrize("source", [TALK, [TALK], [Example(TALK)], {"messages": TALK}])
def test_a_list_of_messages_is_one_conversation(tmp_path, source):
    given = source
    if isinstance(source, dict) or source is TALK:
        given = write(tmp_path / "one.json", json.dumps(source))
    assert [each.text for each in read_examples(given).examples] == [TALK]
    assert [each.text for each in read_examples([TALK, OTHER]).examples] == [TALK, OTHER]
    assert len(read_examples(TALK).examples) == 1


def test_messages_that_cannot_be_read_are_left_out():
    read = read_examples([{"messages": [{"role": "user", "content": 3}]}, {"messages": TALK}])
    assert reasons(read) == [(0, "the messages cannot be read")]
    marked = [{"messages": TALK, "why": "far"}, {"messages": OTHER, "why": None}]
    read = read_examples(marked, text="messages", spans="why")
    assert found(read) == [(OTHER, None)]
    assert "not for messages" in read.left_out[0].reason


def test_rows_of_parquet_that_are_no_text_are_left_out(tmp_path):
    texts = pa.array([b"good", b"\xff\xfe", b"fine"]).view(pa.binary())
    broken = pa.Array.from_buffers(pa.string(), 3, texts.buffers())
    days = pa.array([0, 10**15, 1], pa.timestamp("s"))
    parquet.write_table(pa.table({"text": broken}), tmp_path / "a.parquet")
    parquet.write_table(pa.table({"text": ["a", "b", "c"], "label": days}), tmp_path / "b.parquet")
    read = read_examples(tmp_path / "a.parquet")
    assert [each.text for each in read.examples] == ["good", "fine"]
    assert [each.row for each in read.left_out] == [2]
    assert "cannot be read" not in str(read.left_out[0].reason)
    with pytest.raises(UsageError, match="no usable row"):  # dates are no labels
        read_examples(tmp_path / "b.parquet")


def test_a_parquet_file_that_is_damaged_further_on_is_one_line(tmp_path):
    path = tmp_path / "a.parquet"
    texts = [f"{number} {'film' * 30}" for number in range(20_000)]
    parquet.write_table(pa.table({"text": texts}), path, row_group_size=10_000)
    content = bytearray(path.read_bytes())
    content[-len(content) // 3 : -len(content) // 3 + 900] = b"\xff" * 900
    path.write_bytes(content)
    for read in (read_examples, lambda source: list(read_rows(source))):
        with pytest.raises(UsageError, match=r"after row \d+, cannot be read") as caught:
            read(path)
        assert "\n" not in str(caught.value)


def test_brackets_without_end(tmp_path):
    deep = "[" * 200_000
    (tmp_path / "a.jsonl").write_text(f'{{"text": "good"}}\n{deep}\n{{"text": "fine"}}\n')
    read = read_examples(tmp_path / "a.jsonl")
    assert [each.text for each in read.examples] == ["good", "fine"]
    assert [(each.row, each.reason) for each in read.left_out] == [(2, "not JSON")]
    (tmp_path / "a.json").write_text(deep)
    with pytest.raises(UsageError, match="is not JSON"):
        read_examples(tmp_path / "a.json")


@pytest.mark.parametrize("read", [read_examples, read_rows])
def test_an_empty_name_is_no_folder(read, tmp_path, monkeypatch):
    (tmp_path / "a.csv").write_text("text\ngood\n")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UsageError, match="have no name"):
        read("")
    assert read(".")


@pytest.mark.parametrize(
    "content",
    [
        gzip.compress(b"text\ngood\n" * 99)[:-12],
        gzip.compress(b"text\ngood\n" * 99)[:20] + b"\xff" * 20,
        gzip.compress(b"")[:10] + b"\xff" * 20,
        b"\x1f\x8b" + bytes(30),
        b"plain",
    ],
    # gzip writes the time into its head: such a name would differ between the processes of a run.
    ids=["cut short", "damaged inside", "damaged at once", "empty head", "no gzip"],
)
def test_damaged_gzip_is_one_clear_line(content, tmp_path):
    path = tmp_path / "a.csv.gz"
    path.write_bytes(content)
    with pytest.raises(UsageError, match="cannot be read") as caught:
        read_examples(path)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("name", ["a\0b.csv", "x" * 5000, "x" * 5000 + ".csv", "a/" + "b" * 5000])
def test_names_that_no_file_has(name):
    for read in (read_examples, read_rows):
        with pytest.raises(UsageError) as caught:
            read(name)
        assert len(str(caught.value)) < 1500 and "\n" not in str(caught.value)
