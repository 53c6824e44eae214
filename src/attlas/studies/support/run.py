"""Run: what a study is handed, and how it is run by name: settings, kept parts, files."""

import json
import os
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from math import isfinite
from os import PathLike
from pathlib import Path
from time import monotonic
from typing import Any

import numpy as np
import torch
import transformers

from attlas.errors import ResultFileError, UsageError, refuse_address
from attlas.models.loading.devices import choose_device
from attlas.progress import Step, Watch
from attlas.results import StudyResult
from attlas.results.support.files import digest_of
from attlas.results.support.tables import make_folder, read_json
from attlas.studies.support.findings import Findings
from attlas.studies.support.study import Study
from attlas.version import __version__
from attlas.views import write_whole

PARTS = "parts"  # the folder of what is finished
ENDINGS = (".json", ".md", ".html")  # of what a study writes beside it


@dataclass(frozen=True)
class Run:
    """One run of a study: where it computes, where it keeps its parts, and who watches."""

    study: str
    settings: Mapping[str, Any]
    folder: Path | None
    device: str | None
    watch: Watch
    parts: list[Mapping[str, Any]] = field(default_factory=list)  # where, with what, how long
    fresh: list[float] = field(
        default_factory=list
    )  # seconds of the parts that are not from before

    def kept(
        self, part: str, compute: Callable[[], Any], apart_from: Sequence[str] = ("seeds",)
    ) -> Any:
        """What `compute` returns, as JSON gives it back, or what an earlier run kept of it.

        A part is known by its name and by the settings, `apart_from` those that do not change it,
        so a stopped study goes on with the next part, and one more seed runs one more part.
        """
        asked, place = self._asked(part, apart_from)
        if place is not None and place.is_file():
            found = _read(place, asked)
            if found is not None:
                self.parts.append(found)
                return found["found"]
        return self._computed(compute, asked, place)

    def _computed(
        self, compute: Callable[[], Any], asked: Mapping[str, Any], place: Path | None
    ) -> Any:
        begun = monotonic()
        found = {"asked": asked, "found": compute(), "machine": machine(self.device)}
        found |= {"versions": versions(), "seconds": round(monotonic() - begun, 2)}
        self.parts.append({name: each for name, each in found.items() if name != "found"})
        record = json.loads(as_json(found))
        if place is not None:
            make_folder(place.parent)
            write_whole(place, as_json({**record, "digest": digest_of(record)}))
        return record["found"]

    def is_kept(self, part: str, apart_from: Sequence[str] = ("seeds",)) -> bool:
        """Whether an earlier run kept this part."""
        place = self._asked(part, apart_from)[1]
        return place is not None and place.is_file()

    def _asked(self, part: str, apart_from: Sequence[str]) -> tuple[Mapping[str, Any], Path | None]:
        """What a part depends on, and where it is kept."""
        given = {name: each for name, each in self.settings.items() if name not in apart_from}
        asked = json.loads(as_json({"part": part, "attlas": __version__, **given}))
        place = None if self.folder is None else self.folder / PARTS / file_of(self.study, asked)
        return asked, place

    def seconds(self, passed: float) -> float:
        """The seconds of all its parts, those of before too; without parts, those that passed."""
        each = [float(part["seconds"]) for part in self.parts]
        return round(sum(each) if each else passed, 2)

    def machines(self) -> str:
        """The machines that its parts were computed on."""
        return ", ".join(dict.fromkeys(str(each["machine"]) for each in self.parts))

    def versions(self) -> dict[str, str]:
        """The versions that its parts were computed with, where they differ all of them."""
        every = [each["versions"] for each in self.parts] or [versions()]
        return {
            name: ", ".join(dict.fromkeys(str(each[name]) for each in every)) for name in every[0]
        }

    def tell(self, what: str, done: int, total: int) -> None:
        """Say how far the study is."""
        self.watch(Step(what, done, total))


def file_of(study: str, asked: Mapping[str, Any]) -> str:
    """The name of the file of a part, by what it depends on."""
    digest = sha256(as_json(asked).encode()).hexdigest()[:12]
    word = re.sub(r"[^a-z0-9]+", "-", str(asked["part"]).lower()).strip("-")
    return f"{study}-{word}-{digest}.json"


def run_study(
    chosen: Study,
    options: Mapping[str, Any],
    *,
    quick: bool,
    out: str | PathLike[str] | None,
    device: str | None,
    watch: Watch,
) -> StudyResult:
    """Run a study; with `out`, keep its parts there and write its JSON, Markdown and page."""
    settings = chosen.settings(options, quick=quick)
    device = str(choose_device(device))
    folder = None if out is None else made(Path(out))
    if folder is not None:
        refuse_foreign_files(folder, chosen.name)
    run = Run(chosen.name, settings, folder, device, watch)
    begun = monotonic()
    found: Findings = chosen.function(run, **settings)
    result = result_of(chosen, run, found, quick=quick, passed=monotonic() - begun)
    if folder is not None:
        write_result(result, folder)
    return result


def result_of(
    chosen: Study, run: Run, found: Findings, *, quick: bool, passed: float
) -> StudyResult:
    """What a study found, with the settings, the machines, the versions and the time of its run."""
    return StudyResult(
        chosen.name,
        chosen.question,
        chosen.paper,
        quick,
        found.claims,
        found.differs,
        found.tables,
        found.plots,
        run.settings,
        found.seeds,
        found.notes,
        run.seconds(passed),
        run.machines() or machine(run.device),
        run.versions(),
        found.details,
    )


def refuse_foreign_files(folder: Path, study: str) -> None:
    """Never overwrite what no study wrote; one that was here before has left its JSON."""
    try:
        record = read_json(folder / f"{study}.json")
    except ResultFileError:
        record = None
    if isinstance(record, dict) and record.get("name") == study:
        return
    for ending in ENDINGS:
        place = folder / f"{study}{ending}"
        if os.path.lexists(place):
            raise UsageError(f"{place} exists, but no study wrote it: use another folder")


def write_result(result: StudyResult, folder: Path) -> None:
    """Write the JSON, the Markdown and the page of a study into a folder."""
    write_whole(folder / f"{result.name}.json", as_json(result.to_dict()))
    write_whole(folder / f"{result.name}.md", result.markdown())
    result.to_html(folder / f"{result.name}.html")


def as_json(record: Any) -> str:
    """A record as JSON; a number that JSON cannot hold, such as NaN, is null."""
    return json.dumps(_finite(record), ensure_ascii=False, allow_nan=False)


def versions() -> dict[str, str]:
    """The versions that decide the figures."""
    return {
        "attlas": __version__,
        "torch": torch.__version__,
        "transformers": transformers.__version__,
    }


def machine(device: str | None) -> str:
    """The device that a study runs on, in words."""
    if device is not None and device.startswith("cuda") and torch.cuda.is_available():
        rounded = " and ".join(rounded_on(torch.device(device)))
        told = f", {rounded} rounded to TF32" if rounded else ""
        return f"{torch.cuda.get_device_name(device)}{told}"
    return f"cpu, {os.cpu_count()} cores"


def rounded_on(device: torch.device) -> list[str]:
    """What a device rounds to TF32, by the settings of the process."""
    settings = {
        "products": torch.get_float32_matmul_precision() != "highest",
        "recurrent networks": torch.backends.cudnn.allow_tf32,
    }
    return [what for what, is_so in settings.items() if is_so and device.type == "cuda"]


def _finite(value: Any) -> Any:
    if isinstance(value, (np.ndarray, np.generic)):
        return _finite(value.tolist())
    if isinstance(value, Mapping):
        return {str(key): _finite(each) for key, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [_finite(each) for each in value]
    if isinstance(value, float):
        return value if isfinite(value) else None
    return value if isinstance(value, (str, int)) or value is None else str(value)


def made(folder: Path) -> Path:
    """A folder, which is made if it is not there."""
    refuse_address(folder)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as problem:
        raise UsageError(f"{folder} cannot be made: {problem.strerror}") from problem
    return folder


def _read(place: Path, asked: Mapping[str, Any]) -> Any:
    """The part that is there already, if it was asked in the same way."""
    try:
        record = json.loads(place.read_text("utf-8"))
        said = record.pop("digest", None)  # older parts have none
        if said is not None and said != digest_of(record):
            raise ValueError("it is not what was written there")
        whole = all(name in record for name in ("found", "machine", "versions", "seconds"))
        return record if record["asked"] == asked and whole else None
    except (*(ValueError, KeyError, TypeError, AttributeError), RecursionError) as problem:
        raise UsageError(f"{place} is not a part of this study: {problem}") from problem
