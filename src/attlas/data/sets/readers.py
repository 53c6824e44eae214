"""Readers: how the records of each data set become Examples."""

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from attlas.data.example import Example, Record, Span, Text
from attlas.data.spans import changed, joined, majority, marked, place_words, spans_of, words_of

Reader = Callable[..., Example]
SENTIMENT = ("NEGATIVE", "POSITIVE")
STARS = ("VERY NEGATIVE", "NEGATIVE", "NEUTRAL", "POSITIVE", "VERY POSITIVE")
PRONOUNS = {"he", "him", "his", "himself", "she", "her", "hers", "herself"}
_YELP_ANSWERS = {"yes": "POSITIVE", "no": "NEGATIVE"}


def text_reader(names: Sequence[str]) -> Reader:
    """Make a reader of single texts, given the names of their labels."""

    def read(record: Record) -> Example:
        label = _label(record["label"], names)
        return Example(record["text"], label, (), _without(record, "text", "label"))

    return read


def pair_reader(names: Sequence[str]) -> Reader:
    """Make a reader of pairs of texts, given the names of their labels."""

    def read(record: Record) -> Example:
        label = _label(record["label"], names)
        fields = _without(record, "text_a", "text_b", "label")
        return Example(_pair(record), label, (), fields)

    return read


def review(record: Record) -> Example:
    """Read a review written for Attlas; `fields` has its kind: film, meal, irony, …"""
    spans = tuple(place_words(record["text"], words) for words in record["marked"])
    return Example(record["text"], record["label"], spans, {"kind": record["kind"]})


def newsgroups(record: Record) -> Example:
    """Read a post; its headers, which name the group, go to `fields`."""
    headers, _, body = record["text"].partition("\n\n")
    return Example(body, record["label"], (), {"id": record["id"], "headers": headers})


def sst5(record: Record) -> Example:
    """Read a sentence; `spans` are the words whose own label leans the way of the sentence.

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


def sst(record: Record) -> Example:
    """Read a sentence as `sst5` does, with two labels."""
    return replace(sst5(record), label=SENTIMENT[record["label"] > 2])


def deceptive(record: Record) -> Example:
    """Read a text; `spans` are the words that attention is trained to hide."""
    text = record["text"]
    places = words_of(text)
    task = "sst_wiki" if "impermissible" in record else "pronoun"
    pronouns = [text[slice(*place)].lower() in PRONOUNS for place in places]
    spans = marked(places, record.get("impermissible", pronouns))
    return Example(text, _label(record["label"], SENTIMENT), spans, {"task": task})


def imdb_cad(record: Record) -> Example:
    """Read a review; `spans` are the words that an editor changed to flip its sentiment."""
    spans, revised = changed(record["text"], record["revised_text"])
    fields = {
        "id": record["id"],
        "revised_text": record["revised_text"],
        "revised_label": SENTIMENT[record["revised_label"]],
        "revised_spans": revised,
    }
    return Example(record["text"], SENTIMENT[record["label"]], spans, fields)


def snli_cad(original: Record, *revised: Record) -> Example:
    """Read a pair with its four revisions: two of the hypothesis, then two of the premise.

    `spans` and the first fields belong to the first revision, which changes the second text.
    `revisions` in `fields` has all four, each with the number of the text that was changed.
    """
    columns = ("text_b", "text_b", "text_a", "text_a")
    revisions = tuple(
        _revision(original, record, column) for record, column in zip(revised, columns, strict=True)
    )
    first = revisions[0]
    fields = {
        "revised_text": first["text"],
        "revised_label": first["label"],
        "revised_spans": first["revised_spans"],
        "revisions": revisions,
    }
    return Example(_pair(original), original["label"], first["spans"], fields)


def _revision(original: Record, record: Record, column: str) -> Record:
    spans, revised = changed(original[column], record[column])
    return {
        "text": _pair(record),
        "label": record["label"],
        "part": "ab".index(column[-1]),
        "spans": spans,
        "revised_spans": revised,
    }


def eraser_movies(record: Record) -> Example:
    """Read a review with the phrases that a reader gave as the reason."""
    label = {"NEG": "NEGATIVE", "POS": "POSITIVE"}[record["label"]]
    spans = spans_of(words_of(record["text"]), record["rationale_spans"])
    return Example(record["text"], label, spans, {"id": record["id"]})


def eraser_multirc(record: Record, passage: Record) -> Example:
    """Read a question with an answer, and the passage with the sentences that decide it."""
    spans = spans_of(words_of(passage["text"]), record["rationale_spans"])
    question, _, answer = record["query"].partition(" || ")
    fields = {"id": record["id"], "question": question, "answer": answer}
    return Example((record["query"], passage["text"]), record["label"], spans, fields)


def cose(record: Record) -> Example:
    """Read a question with the words that a reader highlighted; `fields` has the choices."""
    spans = _selected(record["question"], record["selected"])
    fields = {
        **_without(record, "question", "label"),
        "answer": record["choices"][record["label"]],
    }
    return Example(record["question"], record["label"], spans, fields)


def _selected(question: str, selected: str) -> tuple[Span, ...]:
    """Find a selection, which may include words of the web page around the question."""
    words = selected.strip().removeprefix("Question").lstrip(": ").split("Answer Choices")[0]
    pieces = [words] if _find(question, words) else words.split(",")
    return tuple(sorted({span for piece in pieces if (span := _find(question, piece))}))


def _find(text: str, piece: str) -> Span | None:
    letters = [re.escape(letter) for letter in piece if not letter.isspace()]
    if not letters:
        return None
    # A selection keeps its letters but not its white space, and may begin inside a word.
    loose = r"\s*".join(letters)
    for pattern in (rf"(?<!\w){loose}(?!\w)", loose):
        if match := re.search(pattern, text, re.IGNORECASE):
            return match.span()
    return None


def yelp_hat(record: Record) -> Example:
    """Read a review with the attention maps of several people, listed in `annotators`."""
    text, places = joined(record["tokens"])
    answers = zip(record["annotator_labels"], record["attention"], strict=True)
    people = [{"label": _YELP_ANSWERS.get(word), "marks": marks} for word, marks in answers]
    return _annotated(text, SENTIMENT[record["label"]], places, people, {})


def fair_rationales(*records: Record) -> Example:
    """Read a sentence with the rationales of several people, listed in `annotators`."""
    first = records[0]
    people = [_annotator(record) for record in records]
    label = first["original_label"].upper()
    fields = {"id": first["text_id"]}
    return _annotated(first["sentence"], label, words_of(first["sentence"]), people, fields)


def _annotator(record: Record) -> Record:
    is_choice = len(record["original_label"]) == 1
    label = "ABCDE"[int(record["label_index"]) - 1] if is_choice else record["label"].upper()
    answer = {"answer": record["label"]} if is_choice else {}
    marks = json.loads(record["rationale_binary"])
    person = {"id": record["annotator_ID"], "group": record["group_id"]}
    return {**person, "label": label, **answer, "marks": marks}


def _annotated(
    text: str, label: str, places: Sequence[Span], people: list[Record], fields: dict[str, Any]
) -> Example:
    """Take as `spans` the words marked by more than half of those who agree with the label."""
    maps = [person["marks"] for person in people if person["label"] == label]
    spans = marked(places, majority(maps)) if maps else ()
    annotators = tuple(
        {**_without(person, "marks"), "spans": marked(places, person["marks"])} for person in people
    )
    return Example(text, label, spans, {**fields, "annotators": annotators})


def _label(value: Any, names: Sequence[str]) -> str | None:
    """Return the name of a label that is a number; a number below zero is no label."""
    if isinstance(value, str) and not value.lstrip("-").isdigit():
        return value
    return names[int(value)] if int(value) >= 0 else None


def _pair(record: Record) -> Text:
    return record["text_a"], record["text_b"]


def _without(record: Record, *used: str) -> Record:
    return {key: value for key, value in record.items() if key not in used}
