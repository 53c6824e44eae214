"""The data sets known by name: what each is, its files, and the reader of its records."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from attlas.data.sets import readers
from attlas.data.sets.file_rows import (
    RowGroup,
    by_text,
    decided_rows,
    single_rows,
    with_passage,
    with_revisions,
)
from attlas.data.sets.hub import Hub, glue
from attlas.data.sets.readers import SENTIMENT, Reader, pair_reader, text_reader

ENTAILMENT = ("entailment", "neutral", "contradiction")
ENTAILED = ("entailment", "not_entailment")
TOPICS = ("World", "Sports", "Business", "Sci/Tech")
MAPS = ("50words", "100words", "200words", "part7")


@dataclass(frozen=True)
class NamedSet:
    """A data set: what it is, how its rows are grouped and read, and the files of each split."""

    about: str
    read: Reader
    splits: Mapping[str, tuple[str, ...]]
    groups: Callable[[Path, Sequence[str]], Iterator[RowGroup]] = single_rows
    hub: Hub | None = None
    folder: str | None = None  # where its files are, if not under its own name


def _one_file_each(*names: str) -> dict[str, tuple[str, ...]]:
    return {name: (name,) for name in names}


_ALL = _one_file_each("train", "dev", "test")
_TRAIN_DEV = _one_file_each("train", "dev")
_REVISED = ("original", "revised_hypothesis", "revised_premise")

DATA_SETS: dict[str, NamedSet] = {
    "sst2": NamedSet(
        "sentences of film reviews",
        text_reader(SENTIMENT),
        _TRAIN_DEV,
        hub=glue("sst2", "sentence"),
    ),
    "sst5": NamedSet(
        "sentences of film reviews, with the sentiment of every word and phrase",
        readers.sst5,
        _ALL,
    ),
    "sst": NamedSet(
        "sentences of film reviews that are not neutral: sst5 with two labels",
        readers.sst,
        _ALL,
        decided_rows,
        folder="sst5",
    ),
    "imdb": NamedSet(
        "long film reviews",
        text_reader(SENTIMENT),
        _one_file_each("train", "test"),
        hub=Hub("stanfordnlp/imdb"),
    ),
    "imdb_cad": NamedSet(
        "film reviews, with the words an editor changed to flip their sentiment",
        readers.imdb_cad,
        _ALL,
    ),
    "ag_news": NamedSet(
        "news on four topics",
        text_reader(TOPICS),
        _one_file_each("train", "test"),
        hub=Hub("fancyzhx/ag_news"),
    ),
    "20newsgroups": NamedSet(
        "posts on baseball, hockey, space and medicine",
        readers.newsgroups,
        _one_file_each("train", "test"),
    ),
    "rte": NamedSet(
        "pairs: does the first text entail the second?",
        pair_reader(ENTAILED),
        _TRAIN_DEV,
        hub=glue("rte", "sentence1", "sentence2"),
    ),
    "mrpc": NamedSet(
        "pairs: do the two sentences say the same?",
        pair_reader(("not_equivalent", "equivalent")),
        _ALL,
        hub=glue("mrpc", "sentence1", "sentence2"),
    ),
    "cola": NamedSet(
        "sentences that are or are not acceptable English",
        text_reader(("unacceptable", "acceptable")),
        _TRAIN_DEV,
        hub=glue("cola", "sentence"),
    ),
    "qnli": NamedSet(
        "pairs: does the sentence answer the question?",
        pair_reader(ENTAILED),
        _TRAIN_DEV,
        hub=glue("qnli", "question", "sentence"),
    ),
    "mnli": NamedSet(
        "pairs: entailment, neutral or contradiction, in many genres",
        pair_reader(ENTAILMENT),
        _TRAIN_DEV,
        hub=glue("mnli", "premise", "hypothesis", "validation_matched"),
    ),
    "snli_cad": NamedSet(
        "pairs of entailment, with the words editors changed to flip their label",
        readers.snli_cad,
        {split: tuple(f"{kind}_{split}" for kind in _REVISED) for split in _ALL},
        with_revisions,
    ),
    "esnli": NamedSet(
        "pairs of entailment, with explanations in people's words",
        pair_reader(ENTAILMENT),
        _ALL,
    ),
    "eraser_movies": NamedSet(
        "long film reviews, with the phrases readers gave as the reason",
        readers.eraser_movies,
        _ALL,
    ),
    "eraser_multirc": NamedSet(
        "a question with an answer and a passage, with the sentences that decide",
        readers.eraser_multirc,
        {split: ("docs", split) for split in _ALL},
        with_passage,
    ),
    "cose": NamedSet(
        "common-sense questions, with the words readers highlighted",
        readers.cose,
        _TRAIN_DEV,
    ),
    "yelp_hat": NamedSet(
        "reviews of restaurants, with the attention maps of about three people",
        readers.yelp_hat,
        {"test": MAPS, **_one_file_each(*MAPS)},
    ),
    "fair_rationales": NamedSet(
        "sentences and questions, with the rationales of six people each",
        readers.fair_rationales,
        _one_file_each("sst", "dynasent", "cose"),
        by_text,
    ),
    "deceptive_attention": NamedSet(
        "texts, with the words that attention is trained to hide",
        readers.deceptive,
        {
            f"{task.replace('-', '_')}_{split}": (f"{task}_{split}",)
            for task in ("sst-wiki", "pronoun")
            for split in ("test", "dev", "train")
        },
    ),
}
