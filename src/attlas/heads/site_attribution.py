"""The attribution of attention to a target, at each site of one stack."""

from collections.abc import Iterator, Sequence

from attlas.errors import UnsupportedModelError
from attlas.explaining.footprint import check_fits
from attlas.methods import METHODS
from attlas.models.asking.question import Question
from attlas.models.branching.attribution import Attribution, attributions
from attlas.models.branching.integrals import Quadrature
from attlas.models.subject import Subject
from attlas.results import Site


def attribute_sites(
    question: Question, sites: Sequence[Site], steps: int | None
) -> Iterator[Attribution]:
    """What each attention weight of these sites adds to the target's probability.

    `steps` of None takes as many steps as the integral needs.
    """
    check_fits(question, METHODS["attattr"])
    yield from attributions(question, sites, Quadrature(steps=steps))


def check_one_stack(subject: Subject) -> None:
    """Raise an error unless all attention is between the tokens of one text."""
    kinds = list(dict.fromkeys(site.kind for site in subject.sites))
    if len(kinds) > 1:
        raise UnsupportedModelError(
            f"attribution is followed through one stack of attention, and {subject.name} has "
            f"several: {', '.join(kinds)}"
        )
