"""Records with what people marked as the reason: ERASER, CoS-E, YelpHAT, FairRationales."""

import json
import re
from collections.abc import Sequence
from typing import Any

from attlas.data.example import Example, Span
from attlas.data.sets.readers import SENTIMENT, rest_of
from attlas.data.sets.rows import Record
from attlas.data.spans import joined, majority, marked, spans_of, words_of

_SAID = {"yes": "POSITIVE", "no": "NEGATIVE"}


def eraser_movies(record: Record) -> Example:
    """A review with the phrases that a reader gave as the reason."""
    label = {"NEG": "NEGATIVE", "POS": "POSITIVE"}[record["label"]]
    spans = spans_of(words_of(record["text"]), record["rationale_spans"])
    return Example(record["text"], label, spans, {"id": record["id"]})


def eraser_multirc(record: Record, passage: Record) -> Example:
    """A question with an answer, and the passage whose marked sentences decide it."""
    spans = spans_of(words_of(passage["text"]), record["rationale_spans"])
    question, _, answer = record["query"].partition(" || ")
    fields = {"id": record["id"], "question": question, "answer": answer}
    return Example((record["query"], passage["text"]), record["label"], spans, fields)


def cose(record: Record) -> Example:
    """A question with the words that a reader highlighted; the choices are in `fields`."""
    spans = _selected(record["question"], record["selected"])
    fields = {
        **rest_of(record, "question", "label"),
        "answer": record["choices"][record["label"]],
    }
    return Example(record["question"], record["label"], spans, fields)


def _selected(question: str, selected: str) -> tuple[Span, ...]:
    """The places of a selection, which may take in the page's own words around the question."""
    said = selected.strip().removeprefix("Question").lstrip(": ").split("Answer Choices")[0]
    pieces = [said] if _found(question, said) else said.split(",")
    found = {span for piece in pieces if (span := _found(question, piece))}
    return tuple(sorted(found))


def _found(text: str, piece: str) -> Span | None:
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
    """A review with the attention maps of people, one for each in `annotators`."""
    text, places = joined(record["tokens"])
    said = zip(record["annotator_labels"], record["attention"], strict=True)
    people = [{"label": _SAID.get(word), "marks": marks} for word, marks in said]
    return _of_people(text, SENTIMENT[record["label"]], places, people, {})


def fair_rationales(*records: Record) -> Example:
    """A sentence with the rationales of people, one for each in `annotators`."""
    first = records[0]
    people = [_person(record) for record in records]
    label = first["original_label"].upper()
    fields = {"id": first["text_id"]}
    return _of_people(first["sentence"], label, words_of(first["sentence"]), people, fields)


def _person(record: Record) -> Record:
    a_choice = len(record["original_label"]) == 1
    label = "ABCDE"[int(record["label_index"]) - 1] if a_choice else record["label"].upper()
    said = {"answer": record["label"]} if a_choice else {}
    marks = json.loads(record["rationale_binary"])
    who = {"id": record["annotator_ID"], "group": record["group_id"]}
    return {**who, "label": label, **said, "marks": marks}


def _of_people(
    text: str, label: str, places: Sequence[Span], people: list[Record], fields: dict[str, Any]
) -> Example:
    """`spans` are the words marked by more than half of those who gave the label itself."""
    maps = [person["marks"] for person in people if person["label"] == label]
    spans = marked(places, majority(maps)) if maps else ()
    annotators = tuple(
        {**rest_of(person, "marks"), "spans": marked(places, person["marks"])} for person in people
    )
    return Example(text, label, spans, {**fields, "annotators": annotators})
