"""A study whose parts are computed by workers on Ray: each runs the study up to its own part."""

import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from os import PathLike
from pathlib import Path
from typing import Any, NoReturn

from attlas.engine import Engine
from attlas.engine.pool import pool_of
from attlas.engine.worker import Work
from attlas.errors import AttlasError
from attlas.models.loading.devices import choose_device
from attlas.models.subject import Subject
from attlas.progress import Step, Watch
from attlas.results import StudyResult
from attlas.studies.support.run import PARTS, Run, made, run_study
from attlas.studies.support.study import STUDIES, Study
from attlas.views import write_whole


class _UntoldError(BaseException):
    """A study needs what a part found, and no worker has computed it yet."""


class _Untold:
    """What stands for a part that is not computed: whoever looks into it ends the run."""

    def _end(self, *_: Any, **__: Any) -> NoReturn:
        raise _UntoldError

    __getattr__ = __getitem__ = __iter__ = __len__ = __bool__ = __float__ = __eq__ = _end
    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __lt__ = __gt__ = _end
    __hash__ = object.__hash__


@dataclass(frozen=True)
class PartialRun(Run):
    """A run that computes one part only; `untold` are the files of those that it would need."""

    chosen: str = ""  # the file of the part
    untold: list[str] = field(default_factory=list)

    def _computed(
        self, compute: Callable[[], Any], asked: Mapping[str, Any], place: Path | None
    ) -> Any:
        assert place is not None
        if place.name != self.chosen:
            self.untold.append(place.name)
            return _Untold()
        super()._computed(compute, asked, place)
        raise _UntoldError

    def go(self, study: Study) -> list[str]:
        """Run as far as it goes; the files of the parts that were asked for and are not there.

        What fails on something that stands for a part needs that part.
        """
        try:
            study.function(self, **self.settings)
        except _UntoldError:
            pass
        except Exception:
            if self.chosen or not self.untold:
                raise
        return self.untold


@dataclass(frozen=True)
class StudyWork(Work):
    """What workers do for a study: a piece is the file of a part, and gives what is in it."""

    study: str
    settings: Mapping[str, Any]
    device: str
    known: Mapping[str, str]  # the files of the parts that are finished

    def begin(self, subject: Subject | None) -> Callable[[str], str]:
        """Compute parts from now on; they need no model but those that they load."""

        def compute(name: str) -> str:
            with tempfile.TemporaryDirectory() as place:
                parts = made(Path(place) / PARTS)
                for each, text in self.known.items():
                    (parts / each).write_text(text, "utf-8")
                run = PartialRun(
                    self.study,
                    self.settings,
                    Path(place),
                    self.device,
                    lambda step: None,
                    chosen=name,
                )
                run.go(STUDIES[self.study])
                return (parts / name).read_text("utf-8")

        return compute


def run_on_workers(
    chosen: Study,
    options: Mapping[str, Any],
    engine: Engine,
    *,
    quick: bool,
    out: str | PathLike[str] | None,
    device: str | None,
    watch: Watch,
) -> StudyResult:
    """Have workers compute the parts of a study, then run it on what they found.

    Which parts there are is found by running the study without them, up to where it needs one.
    """
    settings = chosen.settings(options, quick=quick)
    kind = choose_device(device).type
    with tempfile.TemporaryDirectory() as place:
        folder = made(Path(out or place))
        scout = partial(PartialRun, chosen.name, settings, folder, kind, lambda step: None)
        while wanted := scout().go(chosen):
            parts = made(folder / PARTS)
            known = {each.name: each.read_text("utf-8") for each in parts.glob("*.json")}
            with pool_of(engine, StudyWork(chosen.name, settings, kind, known), None, kind) as pool:
                done = 0
                look = lambda: watch(Step(f"parts by {pool.state()}", done, len(wanted)))  # noqa
                for name, found in pool.results(((each, each) for each in wanted), look):
                    if isinstance(found, AttlasError):
                        raise found
                    write_whole(parts / name, found)
                    done += 1
        return run_study(chosen, options, quick=quick, out=folder, device=kind, watch=watch)
