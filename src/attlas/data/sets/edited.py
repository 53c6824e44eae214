"""Records that editors changed to turn the label: the changed words are what carried it."""

from attlas.data.example import Example, Text
from attlas.data.sets.readers import SENTIMENT
from attlas.data.sets.rows import Record
from attlas.data.spans import changed


def imdb_cad(record: Record) -> Example:
    """A review whose `spans` are the words an editor changed to turn its sentiment."""
    spans, revised = changed(record["text"], record["revised_text"])
    fields = {
        "id": record["id"],
        "revised_text": record["revised_text"],
        "revised_label": SENTIMENT[record["revised_label"]],
        "revised_spans": revised,
    }
    return Example(record["text"], SENTIMENT[record["label"]], spans, fields)


def snli_cad(original: Record, *revised: Record) -> Example:
    """A pair with its four revisions: two of the hypothesis, then two of the premise.

    `spans` and the first fields are those of the first revision, which is in the second part;
    `revisions` in `fields` has all four, each with the part that was changed.
    """
    parts = ("text_b", "text_b", "text_a", "text_a")
    revisions = tuple(
        _revision(original, record, part) for record, part in zip(revised, parts, strict=True)
    )
    first = revisions[0]
    fields = {
        "revised_text": first["text"],
        "revised_label": first["label"],
        "revised_spans": first["revised_spans"],
        "revisions": revisions,
    }
    return Example(_pair(original), original["label"], first["spans"], fields)


def _pair(record: Record) -> Text:
    return record["text_a"], record["text_b"]


def _revision(original: Record, record: Record, part: str) -> Record:
    spans, revised = changed(original[part], record[part])
    return {
        "text": _pair(record),
        "label": record["label"],
        "part": "ab".index(part[-1]),
        "spans": spans,
        "revised_spans": revised,
    }
