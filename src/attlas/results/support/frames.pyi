"""The types of these names, in a stub: a module that names them must not load pandas."""

from collections.abc import Sequence
from typing import Any

from pandas import DataFrame, MultiIndex

Frame = DataFrame
Labels = MultiIndex

def frame(rows: Any, **named: Any) -> Frame: ...
def labels(rows: Sequence[tuple[Any, ...]], names: Sequence[str]) -> Labels: ...
