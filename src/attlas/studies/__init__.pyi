"""The types of these names, in a stub: listing the studies must not load the results."""

from os import PathLike
from typing import Any

from attlas.progress import Watch
from attlas.results import StudyResult
from attlas.studies.support.study import STUDIES as STUDIES
from attlas.studies.support.study import Study as Study

def study(
    name: str,
    *,
    quick: bool = False,
    out: str | PathLike[str] | None = None,
    device: str | None = None,
    watch: Watch | None = None,
    **options: Any,
) -> StudyResult: ...
def list_studies() -> list[str]: ...
