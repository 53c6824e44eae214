"""Records of plain sets as Examples: texts, pairs, and word labels."""

from collections.abc import Callable, Sequence
from typing import Any

from attlas.data.example import Example
from attlas.data.sets.rows import Record
from attlas.data.spans import joined, marked, words_of

Reader = Callable[..., Example]
SENTIMENT = ("NEGATIVE", "POSITIVE")
STARS = ("VERY NEGATIVE", "NEGATIVE", "NEUTRAL", "POSITIVE", "VERY POSITIVE")
PRONOUNS = {"he", "him", "his", "himself", "she", "her", "hers", "herself"}


def label_of(value: Any, names: Sequence[str]) -> str | None:
    """The name of a label that is given as its number; below zero it is not known."""
    if isinstance(value, str) and not value.lstrip("-").isdigit():
        return value
    return names[int(value)] if int(value) >= 0 else None


def rest_of(record: Record, *used: str) -> Record:
    """What a record has beyond the keys that were used."""
    return {key: value for key, value in record.items() if key not in used}


def text_reader(names: Sequence[str]) -> Reader:
    """A reader of single texts."""

    def read(record: Record) -> Example:
        label = label_of(record["label"], names)
        return Example(record["text"], label, (), rest_of(record, "text", "label"))

    return read


def pair_reader(names: Sequence[str]) -> Reader:
    """A reader of pairs of texts."""

    def read(record: Record) -> Example:
        label = label_of(record["label"], names)
        fields = rest_of(record, "text_a", "text_b", "label")
        return Example((record["text_a"], record["text_b"]), label, (), fields)

    return read


def newsgroups(record: Record) -> Example:
    """A post; its headers, which name the group, are in `fields`."""
    headers, _, body = record["text"].partition("\n\n")
    return Example(body, record["label"], (), {"id": record["id"], "headers": headers})


def sst5(record: Record) -> Example:
    """A sentence; `spans` are the words whose own label leans the way the sentence does.

    `token_labels` and `phrase_labels` in `fields` are (start, end, label) in characters, with
    labels from 0, very negative, to 4, very positive.
    """
    text, places = joined(record["tokens"])
    leans = [(label - 2) * (record["label"] - 2) > 0 for label in record["token_labels"]]
    words = zip(places, record["token_labels"], strict=True)
    fields = {
        "token_labels": tuple((*place, label) for place, label in words),
        "phrase_labels": tuple(
            (places[first][0], places[last - 1][1], label)
            for first, last, label in record["phrase_labels"]
        ),
    }
    return Example(text, STARS[record["label"]], marked(places, leans), fields)


def deceptive(record: Record) -> Example:
    """A text whose `spans` are the words that attention is trained to seem not to use."""
    text = record["text"]
    places = words_of(text)
    task = "sst_wiki" if "impermissible" in record else "pronoun"
    told = [text[slice(*place)].lower() in PRONOUNS for place in places]
    spans = marked(places, record.get("impermissible", told))
    return Example(text, label_of(record["label"], SENTIMENT), spans, {"task": task})
