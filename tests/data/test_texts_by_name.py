"""texts by name, on tiny folders made by hand: exactly these Examples, or a clear error."""

import gzip
import json
import sys
from inspect import isfunction
from pathlib import Path
from types import SimpleNamespace

import pytest

from attlas.data import Example, generated
from attlas.data.sets import readers
from attlas.data.sets.catalogue import DATA_SETS
from attlas.data.texts_by_name import GENERATED, texts, texts_names
from attlas.errors import UnknownNameError, UsageError


@pytest.fixture
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("ATTLAS_DATA", str(tmp_path))
    return tmp_path


def write(home, path, *records):
    file = home / path
    file.parent.mkdir(exist_ok=True)
    lines = "".join(json.dumps(record) + "\n" for record in records)
    file.write_bytes(gzip.compress(lines.encode()) if path.endswith("gz") else lines.encode())


def cut(text, spans):
    return [text[start:end] for start, end in spans]


def numbered(count):
    return [{"text": f"text {i}", "label": i % 2} for i in range(count)]


PAIR = {"text_a": "He runs.", "text_b": "He moves."}


# A file with one record of each data set, and its Example.
RECORDS = [
    ("sst2", "dev.jsonl", {"text": "fun", "label": 1}, Example("fun", "POSITIVE")),
    (
        "imdb",
        "test.jsonl.gz",
        {"id": "7", "text": "dull", "label": 0},
        Example("dull", "NEGATIVE", (), {"id": "7"}),
    ),
    (
        "ag_news",
        "test.jsonl.gz",
        {"text": "Rain.", "title": "Wet", "label": 3},
        Example("Rain.", "Sci/Tech", (), {"title": "Wet"}),
    ),
    ("cola", "dev.jsonl", {"text": "Us go.", "label": 0}, Example("Us go.", "unacceptable")),
    (
        "20newsgroups",
        "test.jsonl",
        {"id": "1", "label": "sci.med", "text": "From: a\nLines: 1\n\nTake\n\nrest."},
        Example("Take\n\nrest.", "sci.med", (), {"id": "1", "headers": "From: a\nLines: 1"}),
    ),
    (
        "rte",
        "dev.jsonl",
        {**PAIR, "label": "entailment"},
        Example(("He runs.", "He moves."), "entailment"),
    ),
    (
        "mrpc",
        "test.jsonl",
        {**PAIR, "label": 0},
        Example(("He runs.", "He moves."), "not_equivalent"),
    ),
    (
        "qnli",
        "dev.jsonl",
        {**PAIR, "label": "not_entailment"},
        Example(("He runs.", "He moves."), "not_entailment"),
    ),
    (
        "mnli",
        "dev_matched.jsonl",
        {**PAIR, "label": "neutral"},
        Example(("He runs.", "He moves."), "neutral"),
    ),
    (
        "esnli",
        "test.jsonl.gz",
        {**PAIR, "label": "entailment", "explanations": ["to run is to move"]},
        Example(
            ("He runs.", "He moves."),
            "entailment",
            (),
            {"explanations": ["to run is to move"]},
        ),
    ),
    (
        "sst5",
        "test.jsonl.gz",
        {
            "tokens": ["not", "dull", "but", "great"],
            "label": 4,
            "token_labels": [1, 0, 2, 4],
            "phrase_labels": [[0, 2, 3], [0, 4, 4]],
        },
        Example(
            "not dull but great",
            "VERY POSITIVE",
            ((13, 18),),
            {
                "token_labels": ((0, 3, 1), (4, 8, 0), (9, 12, 2), (13, 18, 4)),
                "phrase_labels": ((0, 8, 3), (0, 18, 4)),
            },
        ),
    ),
    (
        "imdb_cad",
        "test.jsonl.gz",
        {
            "id": "4",
            "text": "Long, boring.",
            "label": 0,
            "revised_text": "Long, very funny.",
            "revised_label": 1,
        },
        Example(
            "Long, boring.",
            "NEGATIVE",
            ((6, 12),),
            {
                "id": "4",
                "revised_text": "Long, very funny.",
                "revised_label": "POSITIVE",
                "revised_spans": ((6, 16),),
            },
        ),
    ),
    (
        "eraser_movies",
        "val.jsonl.gz",
        {
            "id": "n",
            "label": "NEG",
            "text": "it is\nso bad",
            "rationale_spans": [[2, 4], [1, 1]],
        },
        Example("it is\nso bad", "NEGATIVE", ((6, 12),), {"id": "n"}),
    ),
    (
        "yelp_hat",
        "50words.jsonl.gz",
        {
            "tokens": ["really", "good", "", "soup"],
            "label": 1,
            "annotator_labels": ["yes", "yes", "no", "idk"],
            "attention": [[1, 1, 0, 0], [0, 1, 0, 0], [0, 0, 0, 1], [0, 0, 0, 0]],
        },
        Example(
            "really good  soup",
            "POSITIVE",
            ((7, 11),),
            {
                "annotators": (
                    {"label": "POSITIVE", "spans": ((0, 11),)},
                    {"label": "POSITIVE", "spans": ((7, 11),)},
                    {"label": "NEGATIVE", "spans": ((13, 17),)},
                    {"label": None, "spans": ()},
                )
            },
        ),
    ),
    (
        "deceptive_attention",
        "sst-wiki_test.jsonl.gz",
        {"label": "1", "text": "A joy . Oslo is wet", "impermissible": [1, 1, 1, 0, 0, 0]},
        Example("A joy . Oslo is wet", "POSITIVE", ((0, 7),), {"task": "sst_wiki"}),
    ),
    (
        "deceptive_attention",
        "pronoun_test.jsonl.gz",
        {"label": "F", "text": "Her hat helps , she says"},
        Example("Her hat helps , she says", "F", ((0, 3), (16, 19)), {"task": "pronoun"}),
    ),
]
# The data sets that need more than one record, or many, have tests of their own below.
LARGER = {"cose", "eraser_multirc", "fair_rationales", "snli_cad", "sst"}


def test_every_data_set_has_a_record_here():
    assert {name for name, *_ in RECORDS} | LARGER == set(DATA_SETS)


def test_every_reader_is_used_by_a_data_set():
    used = {each.read for each in DATA_SETS.values()}
    makers = {readers.text_reader, readers.pair_reader}
    functions = {
        each
        for name, each in vars(readers).items()
        if isfunction(each) and each.__module__ == readers.__name__ and not name.startswith("_")
    }
    assert functions - makers - {readers.review} <= used


@pytest.mark.parametrize(("name", "file", "record", "expected"), RECORDS)
def test_each_format_of_one_row(home, name, file, record, expected):
    write(home, f"{name}/{file}", record)
    assert texts(name) == [expected]


def test_multirc_finds_the_passage(home):
    row = {"id": "p:0", "query": "Who ? || Sam", "label": "True", "docid": "p"}
    write(home, "eraser_multirc/test.jsonl.gz", {**row, "rationale_spans": [[2, 4]]})
    write(home, "eraser_multirc/docs.jsonl.gz", {"docid": "p", "text": "Rain fell\nSam ran"})
    fields = {"id": "p:0", "question": "Who ?", "answer": "Sam"}
    text = ("Who ? || Sam", "Rain fell\nSam ran")
    assert texts("eraser_multirc") == [Example(text, "True", ((10, 17),), fields)]


def test_multirc_without_its_passage(home):
    write(home, "eraser_multirc/test.jsonl.gz", {"docid": "q"})
    write(home, "eraser_multirc/docs.jsonl.gz", {"docid": "p", "text": ""})
    with pytest.raises(UsageError, match=r"test\.jsonl\.gz, line 1: there is no passage 'q'"):
        texts("eraser_multirc")


@pytest.mark.parametrize(
    ("selected", "words"),
    [
        ("not for sale", ["not for sale"]),
        ("Question: If a lamp,or two,is not for sale", ["If a lamp, or two, is not for sale"]),
        ("lamp,sale", ["lamp", "sale"]),
        ("a", ["a"]),
        ("where is it?Answer Choices: \xa0", ["where is it?"]),
        ("Question", []),
        ("something else", []),
    ],
)
def test_cose_finds_what_was_selected(home, selected, words):
    question = "If a lamp, or two, is not for sale,  where is it?"
    choices = {"A": "shop", "B": "house"}
    record = {"id": "1", "question": question, "choices": choices, "label": "B"}
    write(home, "cose/dev.jsonl", {**record, "selected": selected, "explanation": "at home"})
    (example,) = texts("cose")
    assert (example.text, example.label) == (question, "B")
    assert cut(question, example.spans) == words
    assert example.fields == {
        "id": "1",
        "choices": choices,
        "selected": selected,
        "explanation": "at home",
        "answer": "house",
    }


def test_snli_cad_has_all_revisions(home):
    original = {"text_a": "A man rides.", "text_b": "A man moves.", "label": "entailment"}
    hypotheses = [
        {**original, "text_b": "A man sleeps.", "label": "contradiction"},
        {**original, "text_b": "A man moves fast.", "label": "neutral"},
    ]
    premises = [
        {**original, "text_a": "A man rests.", "label": "contradiction"},
        {**original, "text_a": "A man.", "label": "neutral"},
    ]
    write(home, "snli_cad/original_test.jsonl", original)
    write(home, "snli_cad/revised_hypothesis_test.jsonl", *hypotheses)
    write(home, "snli_cad/revised_premise_test.jsonl", *premises)
    (example,) = texts("snli_cad")
    assert example.text == ("A man rides.", "A man moves.")
    assert (example.label, example.spans) == ("entailment", ((6, 11),))
    assert example.fields["revised_text"] == ("A man rides.", "A man sleeps.")
    assert example.fields["revised_label"] == "contradiction"
    revisions = example.fields["revisions"]
    assert [each["label"] for each in revisions] == ["contradiction", "neutral"] * 2
    assert [each["part"] for each in revisions] == [1, 1, 0, 0]
    assert [each["spans"] for each in revisions] == [((6, 11),), (), ((6, 11),), ((6, 11),)]


def test_snli_cad_whose_files_do_not_fit(home):
    write(home, "snli_cad/original_test.jsonl", {**PAIR, "label": "neutral"})
    write(home, "snli_cad/revised_hypothesis_test.jsonl", {**PAIR, "label": "neutral"})
    write(home, "snli_cad/revised_premise_test.jsonl", {**PAIR, "label": "neutral"})
    with pytest.raises(UsageError, match="do not match"):
        texts("snli_cad")


def test_sst_is_sst5_without_neutral_sentences(home):
    rows = [
        {"tokens": [word], "label": label, "token_labels": [label], "phrase_labels": []}
        for label, word in enumerate(("awful", "dull", "long", "fine", "great"))
    ]
    write(home, "sst5/test.jsonl", *rows)
    found = [(each.text, each.label) for each in texts("sst")]
    assert found == [
        ("awful", "NEGATIVE"),
        ("dull", "NEGATIVE"),
        ("fine", "POSITIVE"),
        ("great", "POSITIVE"),
    ]


def fair(text_id, sentence, person, said, marks, **more):
    row = {"text_id": text_id, "sentence": sentence, "annotator_ID": person, "group_id": "BO"}
    return {**row, "label": said, "label_index": "2", "rationale_binary": str(marks), **more}


def test_fair_rationales_are_gathered_by_sentence(home):
    write(
        home,
        "fair_rationales/sst.jsonl.gz",
        fair("0", "A joy", "1", "positive", [1, 1], original_label="positive"),
        fair("1", "Bad", "1", "negative", [1], original_label="negative"),
        fair("0", "A joy", "2", "positive", [0, 1], original_label="positive"),
        fair("0", "A joy", "3", "no sentiment", [1, 0], original_label="positive"),
    )
    first, second = texts("fair_rationales")
    assert (first.text, first.label, first.spans) == ("A joy", "POSITIVE", ((2, 5),))
    assert first.fields == {
        "id": "0",
        "annotators": (
            {"id": "1", "group": "BO", "label": "POSITIVE", "spans": ((0, 5),)},
            {"id": "2", "group": "BO", "label": "POSITIVE", "spans": ((2, 5),)},
            {"id": "3", "group": "BO", "label": "NO SENTIMENT", "spans": ((0, 1),)},
        ),
    }
    assert (second.text, second.label, second.spans) == ("Bad", "NEGATIVE", ((0, 3),))


def test_fair_rationales_of_questions_compare_the_letter_of_the_answer(home):
    row = fair("0", "Where to ?", "1", "home", [1, 0, 0], original_label="B")
    write(home, "fair_rationales/cose.jsonl", row)
    (example,) = texts("fair_rationales", split="cose")
    assert (example.label, example.spans) == ("B", ((0, 5),))
    assert example.fields["annotators"][0]["label"] == "B"
    assert example.fields["annotators"][0]["answer"] == "home"


def test_a_sample_is_decided_by_the_seed_and_keeps_the_order(home):
    write(home, "sst2/dev.jsonl", *numbered(50))
    everything = texts("sst2")
    some = texts("sst2", count=10, seed=1)
    assert some == texts("sst2", count=10, seed=1) != texts("sst2", count=10, seed=2)
    assert [everything.index(each) for each in some] == sorted(map(everything.index, some))
    assert len(some) == 10
    assert texts("sst2", count=80) == everything
    assert texts("sst2", count=0) == []
    with pytest.raises(UsageError, match="0 or more, not -1"):
        texts("sst2", count=-1)


def test_a_sample_takes_every_text_equally_often(home):
    write(home, "sst2/dev.jsonl", *numbered(6))
    drawn = [each.text for seed in range(600) for each in texts("sst2", count=2, seed=seed)]
    assert all(160 < drawn.count(f"text {i}") < 240 for i in range(6))


def test_only_what_is_sampled_is_parsed(home):
    write(home, "sst2/dev.jsonl", *numbered(3))
    with (home / "sst2" / "dev.jsonl").open("a") as file:
        file.write("\nnot json\n")
    assert texts("sst2", count=0) == []
    with pytest.raises(UsageError, match=r"sst2/dev\.jsonl, line 5: not JSON"):
        texts("sst2")


@pytest.mark.parametrize(
    ("record", "message"),
    [
        ({"label": 1}, "line 2: there is no 'text'"),
        ({"text": "a", "label": 7}, "line 2: not a record of this set"),
        ({"text": "a", "label": None}, "line 2: not a record of this set"),
        (["a", 1], "line 2: a record is an object, not list"),
    ],
)
def test_a_damaged_record_is_named_by_file_and_line(home, record, message):
    write(home, "sst2/dev.jsonl.gz", *numbered(1), record)
    with pytest.raises(UsageError, match=rf"sst2/dev\.jsonl\.gz, {message}"):
        texts("sst2")


def test_a_file_that_cannot_be_unpacked(home):
    write(home, "sst2/dev.jsonl.gz", *numbered(100))
    file = home / "sst2" / "dev.jsonl.gz"
    file.write_bytes(file.read_bytes()[:-30])
    with pytest.raises(UsageError, match=r"dev\.jsonl\.gz cannot be read"):
        texts("sst2")


def test_the_split_is_the_one_to_test_on(home):
    write(home, "imdb/train.jsonl", {"text": "a", "label": 0})
    assert texts("imdb")[0].text == "a"
    write(home, "imdb/test.jsonl", {"text": "b", "label": 0})
    assert texts("imdb")[0].text == "b"
    assert texts("imdb", split="train")[0].text == "a"


def test_an_unknown_split_names_those_there_are(home):
    write(home, "sst2/dev.jsonl", *numbered(1))
    with pytest.raises(UsageError, match=r"sst2 has no split 'test': allowed: dev$"):
        texts("sst2", split="test")
    with pytest.raises(UsageError, match=r"reviews has no split 'train': allowed: test$"):
        texts("reviews", split="train")


def test_an_unknown_name_names_the_nearest():
    with pytest.raises(UnknownNameError, match="unknown set of texts 'revews': did you mean 'rev"):
        texts("revews")


def test_hyphens_and_capitals_do_not_matter(home):
    write(home, "ag_news/test.jsonl", {"text": "a", "label": 0})
    assert texts("AG-News") == [Example("a", "World")]


def test_a_folder_without_the_files(home):
    (home / "sst2").mkdir()
    with pytest.raises(UsageError, match=r"none of the files of sst2: train\.jsonl, dev\.jsonl"):
        texts("sst2")


def test_a_home_that_is_not_there(home, monkeypatch):
    monkeypatch.setenv("ATTLAS_DATA", str(home / "nowhere"))
    with pytest.raises(UsageError, match="ATTLAS_DATA names a folder that does not exist"):
        texts("sst2")


@pytest.mark.parametrize("name", list(DATA_SETS))
def test_without_folder_and_hub_it_says_what_to_set(name, monkeypatch):
    monkeypatch.delenv("ATTLAS_DATA", raising=False)
    monkeypatch.setitem(sys.modules, "datasets", None)
    folder = DATA_SETS[name].folder or name
    with pytest.raises(UsageError, match=f"set ATTLAS_DATA to a folder that has {folder}/"):
        texts(name)


def test_a_home_without_this_set(home, monkeypatch):
    monkeypatch.setitem(sys.modules, "datasets", None)
    with pytest.raises(UsageError, match="has no folder rte: set ATTLAS_DATA"):
        texts("rte")


def test_the_hub_is_asked_where_its_library_is_installed(monkeypatch):
    asked = []

    def load_dataset(path, config, split):
        asked.append((path, config, split))
        return [{"premise": "He runs.", "hypothesis": "He moves.", "label": 1, "idx": 0}]

    monkeypatch.delenv("ATTLAS_DATA", raising=False)
    monkeypatch.setitem(sys.modules, "datasets", SimpleNamespace(load_dataset=load_dataset))
    assert texts("mnli") == [Example(("He runs.", "He moves."), "neutral", (), {"idx": 0})]
    assert asked == [("nyu-mll/glue", "mnli", "validation_matched")]
    with pytest.raises(UsageError, match="mnli has no split 'test': allowed: train, dev"):
        texts("mnli", split="test")


def test_a_hub_out_of_reach(monkeypatch):
    def load_dataset(path, config, split):
        raise ConnectionError("no network")

    monkeypatch.delenv("ATTLAS_DATA", raising=False)
    monkeypatch.setitem(sys.modules, "datasets", SimpleNamespace(load_dataset=load_dataset))
    with pytest.raises(UsageError, match=r"the hub did not give .*imdb, test: no network"):
        texts("imdb")


@pytest.fixture
def generator(monkeypatch):
    def generate(count, seed):
        return [Example(f"{seed} {i}") for i in range(count)]

    monkeypatch.setitem(
        sys.modules, "attlas.data.generated.facts", SimpleNamespace(generate=generate)
    )
    return generate


def test_generated_sets_are_made_by_their_module(generator):
    assert texts("facts", count=3, seed=5) == generator(3, 5)
    assert len(texts("facts")) == 100
    assert texts("facts", count=0) == []


def test_generated_sets_have_one_split(generator):
    assert texts("facts", split="test", count=1) == generator(1, 0)
    with pytest.raises(UsageError, match=r"facts has no split 'train': allowed: test$"):
        texts("facts", split="train")
    with pytest.raises(UsageError, match="0 or more, not -1"):
        texts("facts", count=-1)


def test_every_generator_has_a_name():
    folder = Path(generated.__file__).parent
    assert {path.stem for path in folder.glob("*.py")} - {"__init__"} == set(GENERATED)


def test_every_name_has_one_line():
    names = texts_names()
    assert {"reviews", "reviews_hard", *GENERATED, *DATA_SETS} == set(names)
    assert all(about and "\n" not in about and len(about) < 80 for about in names.values())
