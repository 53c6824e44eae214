"""Which columns of a table hold the text, its label and what else is read."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields

from attlas.errors import UnknownNameError, UsageError

TEXTS = (
    "text", "sentence", "review", "review_text", "reviewtext", "content", "body", "comment",
    "comment_text", "tweet", "message", "document", "article", "post", "utterance", "headline",
    "description", "question", "query", "prompt", "input", "title",
)  # fmt: skip
PAIRS = (
    ("text_a", "text_b"),
    ("sentence1", "sentence2"),
    ("premise", "hypothesis"),
    ("question1", "question2"),
    ("question", "sentence"),
)
LABELS = (
    "label", "labels", "gold_label", "class", "target", "sentiment", "stars", "star_rating",
    "rating", "category", "topic", "polarity", "y",
)  # fmt: skip
CLUSTERS = ("cluster", "group")


@dataclass(frozen=True)
class Columns:
    """The column of each thing that is read; None where there is none."""

    text: str
    pair: str | None = None
    label: str | None = None
    spans: str | None = None
    cluster: str | None = None

    def named(self) -> dict[str, str]:
        """What is read, and the column it is read from."""
        found = {each.name: getattr(self, each.name) for each in fields(self)}
        return {name: column for name, column in found.items() if column is not None}


def find_columns(
    there: Sequence[str],
    text: str | None = None,
    pair: str | None = None,
    label: str | None = None,
    spans: str | None = None,
) -> Columns:
    """The columns asked for; those not asked for by their usual names, spans never."""
    for name in (text, pair, label, spans):
        if name is not None and name not in there:
            raise UnknownNameError("column", name, there)
    if pair is not None and text is None:
        raise UsageError(f"pair={pair!r} is the second text: give the first too, as text=")
    rest = [name for name in there if name not in (text, pair, spans)]
    label = label or _first(rest, LABELS)
    others = [name for name in rest if name != label]
    if text is None:
        text, pair = _find_text(others)
    cluster = _first([name for name in others if name not in (text, pair)], CLUSTERS)
    return Columns(text, pair, label, spans, cluster)


def _find_text(there: Sequence[str]) -> tuple[str, str | None]:
    for first, second in PAIRS:
        found = _first(there, [first]), _first(there, [second])
        if found[0] is not None and found[1] is not None:
            return found[0], found[1]
    only = there[0] if len(there) == 1 else None
    text = _first(there, TEXTS) or only
    if text is None:
        columns = ", ".join(there) or "none"
        raise UsageError(f"which column is the text? give it as text=; there are: {columns}")
    return text, None


def _first(there: Iterable[str], usual: Sequence[str]) -> str | None:
    known = {name.strip().lower(): name for name in there}
    return next((known[name] for name in usual if name in known), None)
