"""Where the attribution of attention comes from, for all that is built on it."""

from collections.abc import Iterator, Sequence

from attlas.errors import UnsupportedModelError
from attlas.models.asking.question import Question
from attlas.models.branching.attribution import Attribution, Quadrature, attributions
from attlas.models.subject import Subject
from attlas.results import Site


def attribute_sites(
    question: Question, sites: Sequence[Site], steps: int | None
) -> Iterator[Attribution]:
    """What each head of these sites brings the target's probability, entry by entry.

    With no number of `steps`, as many as it takes.
    """
    yield from attributions(question, sites, Quadrature(steps=steps))


def check_one_stack(subject: Subject) -> None:
    """An error unless all attention is from the tokens of one text to each other."""
    kinds = list(dict.fromkeys(site.kind for site in subject.sites))
    if len(kinds) > 1:
        raise UnsupportedModelError(
            f"attribution is followed through one stack of attention, and {subject.name} has "
            f"several: {', '.join(kinds)}"
        )
