"""Where the attribution of attention comes from, for all that is built on it."""

from collections.abc import Iterator, Sequence

from attlas.methods.attattr import Attribution, attributions, places
from attlas.models.question import Question
from attlas.results import Site

RULE = "midpoint"


def attribute_sites(
    question: Question, sites: Sequence[Site], steps: int
) -> Iterator[Attribution]:
    """What each head of these sites brings the target's probability, entry by entry."""
    yield from attributions(question, sites, places(steps, RULE))
