"""The tokens people marked, where they can judge an explanation."""

from attlas.errors import UsageError
from attlas.measures.support.measure import Case
from attlas.shapes import TokenMarks


def telling(case: Case) -> TokenMarks | None:
    """The marks of a case; None where no token is marked or all are, and any order is as good."""
    if case.marks is None:
        raise UsageError("this measure needs marked tokens, and the text has no marks")
    return case.marks if case.marks.any() and not case.marks.all() else None
