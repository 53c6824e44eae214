"""The data sets that are known by name: what each is, its files, and how a record is read."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from attlas.data.sets import edited, rationales, readers
from attlas.data.sets.hub import Hub, glue
from attlas.data.sets.readers import SENTIMENT, Reader, pair_reader, text_reader
from attlas.data.sets.units import Unit, by_text, one_row, with_passage, with_revisions

ENTAILMENT = ("entailment", "neutral", "contradiction")
ENTAILED = ("entailment", "not_entailment")
TOPICS = ("World", "Sports", "Business", "Sci/Tech")
MAPS = ("50words", "100words", "200words", "part7")


@dataclass(frozen=True)
class Named:
    """A data set: what it is, how a record is read, and the files of each split."""

    about: str
    read: Reader
    splits: Mapping[str, tuple[str, ...]]
    units: Callable[[Path, Sequence[str]], Iterator[Unit]] = one_row
    hub: Hub | None = None


def _each(*names: str) -> dict[str, tuple[str, ...]]:
    return {name: (name,) for name in names}


_ALL = _each("train", "dev", "test")
_TRAIN_DEV = _each("train", "dev")
_REVISED = ("original", "revised_hypothesis", "revised_premise")

NAMED: dict[str, Named] = {
    "sst2": Named(
        "sentences of film reviews",
        text_reader(SENTIMENT),
        _TRAIN_DEV,
        hub=glue("sst2", "sentence"),
    ),
    "sst5": Named(
        "sentences of film reviews, with the sentiment of every word and phrase",
        readers.sst5,
        _ALL,
    ),
    "imdb": Named(
        "long film reviews",
        text_reader(SENTIMENT),
        _each("train", "test"),
        hub=Hub("stanfordnlp/imdb"),
    ),
    "imdb_cad": Named(
        "film reviews, with the words an editor changed to turn their sentiment",
        edited.imdb_cad,
        _ALL,
    ),
    "ag_news": Named(
        "news in four topics",
        text_reader(TOPICS),
        _each("train", "test"),
        hub=Hub("fancyzhx/ag_news"),
    ),
    "20newsgroups": Named(
        "posts on baseball, hockey, space and medicine",
        readers.newsgroups,
        _each("train", "test"),
    ),
    "rte": Named(
        "pairs: does the first text entail the second?",
        pair_reader(ENTAILED),
        _TRAIN_DEV,
        hub=glue("rte", "sentence1", "sentence2"),
    ),
    "mrpc": Named(
        "pairs: do the two sentences say the same?",
        pair_reader(("not_equivalent", "equivalent")),
        _ALL,
        hub=glue("mrpc", "sentence1", "sentence2"),
    ),
    "cola": Named(
        "sentences that are or are not acceptable English",
        text_reader(("unacceptable", "acceptable")),
        _TRAIN_DEV,
        hub=glue("cola", "sentence"),
    ),
    "qnli": Named(
        "pairs: does the sentence answer the question?",
        pair_reader(ENTAILED),
        _TRAIN_DEV,
        hub=glue("qnli", "question", "sentence"),
    ),
    "mnli": Named(
        "pairs: entailment, neutral or contradiction, in many genres",
        pair_reader(ENTAILMENT),
        _TRAIN_DEV,
        hub=glue("mnli", "premise", "hypothesis", "validation_matched"),
    ),
    "snli_cad": Named(
        "pairs of entailment, with the words editors changed to turn their label",
        edited.snli_cad,
        {split: tuple(f"{kind}_{split}" for kind in _REVISED) for split in _ALL},
        with_revisions,
    ),
    "esnli": Named(
        "pairs of entailment, with explanations in people's words",
        pair_reader(ENTAILMENT),
        _ALL,
    ),
    "eraser_movies": Named(
        "long film reviews, with the phrases readers gave as the reason",
        rationales.eraser_movies,
        _ALL,
    ),
    "eraser_multirc": Named(
        "a question with an answer and a passage, with the sentences that decide",
        rationales.eraser_multirc,
        {split: ("docs", split) for split in _ALL},
        with_passage,
    ),
    "cose": Named(
        "questions of common sense, with the words readers highlighted",
        rationales.cose,
        _TRAIN_DEV,
    ),
    "yelp_hat": Named(
        "reviews of restaurants, with the attention maps of about three people",
        rationales.yelp_hat,
        {"test": MAPS, **_each(*MAPS)},
    ),
    "fair_rationales": Named(
        "sentences and questions, with the rationales of six people each",
        rationales.fair_rationales,
        _each("sst", "dynasent", "cose"),
        by_text,
    ),
    "deceptive_attention": Named(
        "texts, with the words that attention is to seem not to use",
        readers.deceptive,
        {
            f"{task.replace('-', '_')}_{split}": (f"{task}_{split}",)
            for task in ("sst-wiki", "pronoun")
            for split in ("test", "dev", "train")
        },
    ),
}
