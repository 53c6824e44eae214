"""The types of these names, in a stub: listing the studies must not load the results."""

from typing import Any, Literal, overload

from attlas.results.support.result import Result
from attlas.studies.attattr import AttattrStudy
from attlas.studies.support.study import STUDIES as STUDIES
from attlas.studies.support.study import Study as Study

@overload
def study(name: Literal["attattr"], **options: Any) -> AttattrStudy: ...
@overload
def study(name: str, **options: Any) -> Result: ...
def list_studies() -> list[str]: ...
