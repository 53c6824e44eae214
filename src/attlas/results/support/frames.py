"""Tables of pandas, which is imported when the first one is made: most results never become one."""

from collections.abc import Sequence
from typing import Any

Frame = Any  # a DataFrame: the stub beside this file says so to type checkers
Labels = Any  # a MultiIndex


def frame(rows: Any, **named: Any) -> Frame:
    """Make a table; its `columns` and its `index` may be named."""
    from pandas import DataFrame

    return DataFrame(rows, **named)


def labels(rows: Sequence[tuple[Any, ...]], names: Sequence[str]) -> Labels:
    """The labels of a table's rows or columns, each of several parts."""
    from pandas import MultiIndex

    return MultiIndex.from_tuples(rows, names=names)
