"""Every verb that takes data reads the same kinds of data in the same way."""

import json
from pathlib import Path

import pandas as pd
import pytest
from subjects import subject as subject_of

import attlas
from attlas.data import Example, read_examples
from attlas.errors import UsageError

TEXTS = [
    ("the film was not good", "NEGATIVE"),
    ("a cat sat", "POSITIVE"),
    ("my dog was kind", "POSITIVE"),
    ("the dog was not good", "NEGATIVE"),
    ("the film was kind", "POSITIVE"),
    ("a dog sat", "NEGATIVE"),
]
RECORDS = [{"text": text, "label": label} for text, label in TEXTS]
ODD = [{"where": "here", "body": text, "mood": label} for text, label in TEXTS]


class Dataset:
    """Looks like a Dataset of the `datasets` library, which need not be installed."""

    def __init__(self, records):
        self.records, self.column_names = records, list(records[0])
        self.features = dict.fromkeys(self.column_names)

    def __iter__(self):
        return iter(self.records)


class DatasetDict(dict):
    """Looks like a DatasetDict: splits by name."""

    @property
    def column_names(self):
        return {split: each.column_names for split, each in self.items()}


class Planned(Exception):
    """An audit that is planned, and goes no further."""


def audit(subject, data, **columns):
    """What the audit is of; the audit itself is the same for the same plan."""

    def go_no_further(plan, *_):
        raise Planned(plan)

    with pytest.MonkeyPatch.context() as patch, pytest.raises(Planned) as stopped:
        patch.setattr("attlas.auditing.audit.run", go_no_further)
        attlas.audit(subject, data, ["raw_attention"], ["sufficiency"], [], **columns)
    (plan,) = stopped.value.args
    return len(plan.texts), (plan.identity()["texts"], plan.texts.gold)


def head_importance(subject, data, **columns):
    found = attlas.head_importance(subject, data, "attention", **columns)
    return found.examples, found.mean.tolist()


def head_effectiveness(subject, data, **columns):
    found = attlas.head_effectiveness(subject, data, ["attention"], **columns)
    return found.examples, found.curves


def prune_curve(subject, data, **columns):
    found = attlas.prune_curve(subject, data, by=["attention"], **columns)
    return found.examples + found.importances[0].examples, found.curves


def head_redundancy(subject, data, **columns):
    found = attlas.head_redundancy(subject, data, **columns)
    return found.examples, found.distances.tolist()


def triggers(subject, data, **columns):
    found = attlas.triggers(subject, data, candidates=2, draws=1, steps=1, **columns)
    numbers = [int(word) for word in found.notes[0].split() if word.isdigit()]
    return numbers[1] + numbers[3], found.triggers


VERBS = {
    each.__name__: each
    for each in (
        audit, head_importance, head_effectiveness, prune_curve, head_redundancy, triggers,
    )
}  # fmt: skip
WITH_LABELS = [name for name in VERBS if name not in ("audit", "head_redundancy")]


@pytest.fixture(scope="module")
def subject():
    return subject_of("sequence classification")


@pytest.fixture(scope="module")
def expected(subject):
    """What each verb finds in the Examples themselves."""
    examples = [Example(text, label) for text, label in TEXTS]
    return {name: verb(subject, examples) for name, verb in VERBS.items()}


def write(path, records):
    frame = pd.DataFrame(records)
    if path.suffix in (".csv", ".tsv"):
        frame.to_csv(path, index=False, sep="," if path.suffix == ".csv" else "\t")
    elif path.suffix == ".parquet":
        frame.to_parquet(path)
    elif path.suffix == ".json":
        path.write_text(json.dumps(records))
    else:
        path.write_text("\n".join(map(json.dumps, records)))
    return path


KINDS = {
    "pairs": lambda folder: TEXTS,
    "records": lambda folder: RECORDS,
    "a generator": lambda folder: (each for each in TEXTS),
    "a DataFrame": lambda folder: pd.DataFrame(RECORDS),
    "a Dataset": lambda folder: Dataset(RECORDS),
    "what read_examples gave": lambda folder: read_examples(TEXTS),
    "a path": lambda folder: write(folder / "data.csv", RECORDS),
    **{
        f"a {ending} file": lambda folder, ending=ending: str(
            write(folder / f"data.{ending}", RECORDS)
        )
        for ending in ("csv", "tsv", "json", "jsonl", "parquet")
    },
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_reads_every_kind_of_data(subject, expected, tmp_path, verb, kind):
    assert VERBS[verb](subject, KINDS[kind](tmp_path)) == expected[verb]


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_reads_a_named_set(verb):
    subject, examples = attlas.load("shortcut_token"), attlas.texts("shortcuts", count=6)
    by_name = VERBS[verb](subject, "shortcuts", count=6)
    assert by_name == VERBS[verb](subject, examples)
    assert by_name[0] == 6


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_takes_columns_splits_and_counts(subject, expected, tmp_path, verb):
    named = {"text": "body", "label": "mood"}
    assert VERBS[verb](subject, ODD, **named) == expected[verb]
    splits = DatasetDict(train=Dataset(ODD[:1]), validation=Dataset(ODD))
    assert VERBS[verb](subject, splits, split="dev", **named) == expected[verb]
    path = tmp_path / "splits.json"
    path.write_text(json.dumps({"train": RECORDS[:1], "dev": RECORDS}))
    assert VERBS[verb](subject, path, split="dev") == expected[verb]
    assert VERBS[verb](subject, TEXTS, count=4)[0] == 4


@pytest.mark.parametrize("data", [3, None, {"text": ["a"]}, b"a,b"], ids=repr)
@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_refuses_what_is_no_data_in_the_same_words(subject, verb, data):
    with pytest.raises(UsageError) as refused:
        VERBS[verb](subject, data)
    assert str(refused.value) == (
        "data are a name, a file or a folder of files (.csv, .tsv, .json, .jsonl, .ndjson, "
        ".parquet, .arrow, .feather), a DataFrame, "
        f"a Dataset or a list, not a value of type {type(data).__name__}"
    )


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_refuses_wrong_data_in_the_same_words(subject, verb):
    for data, message in (
        ("revues", "unknown set of texts 'revues'"),
        ("none.csv", "none.csv cannot be read: No such file"),
        (Path("none.jsonl"), "none.jsonl cannot be read: No such file"),
        ([], "a list has no rows"),
        (["", None], "a list has no usable row"),
        ([{"a": 1, "b": 2}], "which column is the text"),
    ):
        with pytest.raises(UsageError, match=message):
            VERBS[verb](subject, data)


@pytest.mark.parametrize("verb", WITH_LABELS)
def test_a_verb_that_needs_labels_says_so(subject, verb):
    with pytest.raises(UsageError, match=f"{verb} needs labelled texts, and a list has no labels"):
        VERBS[verb](subject, [text for text, _ in TEXTS])


@pytest.mark.parametrize("verb", WITH_LABELS)
def test_a_text_without_a_label_is_left_out_where_others_have_one(subject, expected, verb):
    assert VERBS[verb](subject, [*TEXTS, "no label"]) == expected[verb]


@pytest.mark.parametrize("verb", ["audit", "head_redundancy"])
def test_a_verb_that_needs_no_labels_reads_texts(subject, verb):
    assert VERBS[verb](subject, [text for text, _ in TEXTS])[0] == len(TEXTS)
