"""The tokens that people marked, if an explanation can be judged by them."""

from attlas.errors import UsageError
from attlas.measures.support.measure import Case
from attlas.shapes import TokenMarks


def usable_marks(case: Case) -> TokenMarks | None:
    """The marks of a case; None if no token or every token is marked: then all orders are equal."""
    if case.marks is None:
        raise UsageError("this measure needs marked tokens, and the text has no marks")
    return case.marks if case.marks.any() and not case.marks.all() else None
