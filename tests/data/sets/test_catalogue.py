"""The data sets themselves, where they are at hand: published counts, and marks that fit."""

import os
from pathlib import Path

import pytest

from attlas.data.sets.catalogue import DATA_SETS
from attlas.data.texts_by_name import texts

BESIDE = Path(__file__).parents[3] / "shared" / "data"
HOME = Path(os.environ.get("ATTLAS_DATA") or BESIDE)
PUBLISHED = {
    "sst2": {"train": 67_349, "dev": 872},
    "sst5": {"train": 8_544, "dev": 1_101, "test": 2_210},
    "sst": {"train": 6_920, "dev": 872, "test": 1_821},
    "imdb": {"train": 25_000},
    "imdb_cad": {"train": 1_707, "dev": 245, "test": 488},
    "ag_news": {"test": 7_600},
    "rte": {"train": 2_490, "dev": 277},
    "mrpc": {"train": 3_668, "dev": 408, "test": 1_725},
    "cola": {"train": 8_551, "dev": 1_043},
    "mnli": {"dev": 9_815},
    "snli_cad": {"train": 1_666, "dev": 200, "test": 400},
    "eraser_movies": {"train": 1_600, "dev": 200, "test": 199},
    "cose": {"train": 7_610, "dev": 950},
}
# How many in a hundred have spans: neutral sentences have none in sst5, some texts were turned by
# adding words alone, and some people marked no word in common.
WITH_SPANS = {
    "sst5": 60,
    "imdb_cad": 98,
    "snli_cad": 80,
    "eraser_movies": 100,
    "eraser_multirc": 100,
    "cose": 99,
    "yelp_hat": 95,
    "fair_rationales": 95,
    "deceptive_attention": 100,
}


def needs(name, monkeypatch):
    if not (HOME / (DATA_SETS[name].folder or name)).is_dir():
        pytest.skip(f"{name} is not in {HOME}: set ATTLAS_DATA to a folder that has it")
    monkeypatch.setenv("ATTLAS_DATA", str(HOME))


def published():
    for name, splits in PUBLISHED.items():
        for split, count in splits.items():
            marks = [pytest.mark.slow] if count > 20_000 else []
            yield pytest.param(name, split, count, marks=marks, id=f"{name} {split}")


@pytest.mark.parametrize(("name", "split", "count"), list(published()))
def test_counts_are_the_published_ones(name, split, count, monkeypatch):
    needs(name, monkeypatch)
    assert len(texts(name, split=split)) == count


@pytest.mark.parametrize("name", list(DATA_SETS))
def test_every_set_gives_labelled_texts(name, monkeypatch):
    needs(name, monkeypatch)
    examples = texts(name, count=50, seed=3)
    assert len(examples) == 50
    assert all(example.label for example in examples)
    assert all(len(example.text) == 2 or isinstance(example.text, str) for example in examples)
    assert len({example.label for example in examples}) > 1


@pytest.mark.parametrize(("name", "percent"), list(WITH_SPANS.items()))
def test_spans_are_words_of_the_text(name, percent, monkeypatch):
    needs(name, monkeypatch)
    examples = texts(name, count=200, seed=5)
    assert 100 * sum(bool(each.spans) for each in examples) >= percent * len(examples)
    for example in examples:
        text = example.text if isinstance(example.text, str) else example.text[1]
        for start, end in example.spans:
            assert 0 <= start < end <= len(text)
            assert text[start:end] == text[start:end].strip()


@pytest.mark.parametrize("name", ["imdb_cad", "snli_cad"])
def test_editors_turned_the_label(name, monkeypatch):
    needs(name, monkeypatch)
    examples = texts(name)
    assert all(each.fields["revised_label"] != each.label for each in examples)
    # One pair in each of the two test splits is there unchanged, under another label.
    assert sum(not (each.spans or each.fields["revised_spans"]) for each in examples) == 1


def test_every_sentence_of_fair_rationales_has_six_annotators(monkeypatch):
    needs("fair_rationales", monkeypatch)
    examples = texts("fair_rationales", split="sst")
    assert sum(len(example.fields["annotators"]) for example in examples) == 1_578
    assert {len(example.fields["annotators"]) for example in examples} == {6}


def test_yelp_hat_is_all_its_parts(monkeypatch):
    needs("yelp_hat", monkeypatch)
    assert len(texts("yelp_hat")) == 1_545
