"""Studies, one file each: published experiments, run again on your own models and data."""

from os import PathLike
from typing import Any

from attlas.engine import Engine, engine_of
from attlas.progress import Watch, watched
from attlas.studies.support.study import STUDIES, Study

__all__ = ["STUDIES", "Study", "list_studies", "study"]


def study(
    name: str,
    *,
    quick: bool = False,
    out: str | PathLike[str] | None = None,
    device: str | None = None,
    engine: str | Engine = "local",
    watch: Watch | None = None,
    **options: Any,
) -> Any:
    """Run a published experiment again, by its name; `list_studies` lists them.

    Args:
        name: The study; hyphens and underscores are the same.
        quick: Run the quick form, on a small subset, which is marked as such everywhere.
        out: A folder: finished parts are kept there and not run again, and it gets the result as
            JSON, as Markdown and as a page.
        device: Where models run: "cpu", "cuda", …; chosen if not given.
        engine: "local", "ray", or an `attlas.Engine`: who computes the parts.
        watch: Called with a `Step` whenever a new piece of work begins.
        options: Options of the study: see the function of this name in `attlas.studies`.

    Example:
        >>> attlas.study("poster", quick=True)
    """
    with watched(watch, f"running the study {name}") as told:
        chosen, workers = STUDIES[name], engine_of(engine)
        from attlas.studies.support.run import run_study  # it loads torch, and listing must not

        how = {"quick": quick, "device": device, "watch": told}
        if workers.is_alone:
            return run_study(chosen, options, out=out, **how)
        from attlas.studies.support.workers import run_on_workers

        return run_on_workers(chosen, options, workers, out=out, **how)


def list_studies() -> list[str]:
    """Return the names of all studies."""
    return STUDIES.names()
