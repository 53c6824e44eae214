"""Studies, one file each: published experiments, run again on your own models and data."""

from typing import Any

from attlas.studies.support.study import STUDIES, Study

__all__ = ["STUDIES", "Study", "list_studies", "study"]


def study(name: str, **options: Any) -> Any:
    """Run a published experiment again, by its name; `list_studies` lists them.

    Its options and its result are its own: see the function of this name in `attlas.studies`.
    """
    return STUDIES[name].run(options)


def list_studies() -> list[str]:
    """Return the names of all studies."""
    return STUDIES.names()
