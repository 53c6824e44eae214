"""Survey of the models that the tests of a transformers checkout build, one process a family.

Each class is opened and compared as in the other survey; on each class with a head every method is
tried. A process that dies or hangs is a row, not the end. What is done is in one JSON file a
family, so that a survey that was stopped goes on where it was.
"""

from __future__ import annotations

import json
import os
import signal
import tempfile
import time
import warnings
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import torch
import transformers
from compatibility_judge import Trial, first_line, judge, limited
from compatibility_page import Row
from testers_methods import cells
from testers_models import built, classes, enter, families
from testers_page import RAW, SIGNS, Tried, write

OUT = Path(tempfile.gettempdir()) / "attlas_testers"
LIMIT = 60  # seconds of processor time to open one class
LIMIT_OF_FAMILY = 3600  # seconds for all of a family


def survey(checkout: Path, only: Sequence[str], out: Path, page: Path | None) -> None:
    """Try all families, or those in `only` again, and write the pages."""
    out.mkdir(parents=True, exist_ok=True)
    enter(checkout)
    named = list(only) or families(checkout)
    for number, family in enumerate(named, 1):
        path = out / f"{family}.json"
        if only or not path.exists() or not _read(path)["done"]:
            _in_own_process(checkout, family, path)
        print(f"{number}/{len(named)} {family}: {_summary(_read(path))}", flush=True)
    if page:
        paths = [out / f"{family}.json" for family in families(checkout)]
        missing = [path.stem for path in paths if not path.exists()]
        if missing:
            print(f"{page} is without {len(missing)} families not tried yet: {', '.join(missing)}")
        found = [_read(path) for path in paths if path.exists()]
        tried = [Tried(Row(**each["row"]), each["cells"]) for f in found for each in f["rows"]]
        write(page, tried, "; ".join(sorted({each["versions"] for each in found})))


def _in_own_process(checkout: Path, family: str, path: Path) -> None:
    child = os.fork()
    if child == 0:
        try:
            _try_family(checkout, family, path)
        finally:
            os._exit(0)
    began = time.monotonic()
    while os.waitpid(child, os.WNOHANG) == (0, 0):
        if time.monotonic() - began > LIMIT_OF_FAMILY:
            os.kill(child, signal.SIGKILL)
        time.sleep(0.05)
    kept = _read(path) if path.exists() else {"rows": [], "at": family}
    if not kept.get("done"):
        lost = Row(family, kept["at"], "wrong", {}, note="its process died or hung here")
        _keep(path, [*kept["rows"], {"row": asdict(lost), "cells": None}], done=True)


def _try_family(checkout: Path, family: str, path: Path) -> None:
    warnings.simplefilter("ignore")
    transformers.logging.set_verbosity_error()
    torch.set_num_threads(1)
    rows: list[dict[str, Any]] = []
    try:
        found = classes(checkout, family)
    except Exception as error:
        row = Row(family, family, "not built", {}, note=_told(error))
        _keep(path, [{"row": asdict(row), "cells": None}], done=True)
        return
    for name, (case, model_class) in found.items():
        _keep(path, rows, at=name)
        rows.append(_try_class(family, name, case, model_class))
    _keep(path, rows, done=True)


def _try_class(family: str, name: str, case: Any, model_class: Any) -> dict[str, Any]:
    row = Row(family, name, "not built", {})
    try:
        with limited(LIMIT):
            model, inputs = built(case, model_class)
            Trial(model, inputs).output()
    except Exception as error:
        return {"row": asdict(replace(row, note=_told(error))), "cells": None}
    try:
        with limited(LIMIT):
            row = judge(family, name, Trial(model, inputs))
    except TimeoutError as error:
        row = replace(row, verdict="wrong", note=str(error))
    if row.verdict == "no softmax attention":
        return {"row": asdict(row), "cells": None}
    try:
        return {"row": asdict(row), "cells": cells(model, inputs)}
    except Exception as error:
        return {"row": asdict(row), "cells": {"all": f"{RAW}: {_told(error)}"}}


def _told(error: Exception) -> str:
    return f"{type(error).__name__}: {first_line(str(error))}"


def _keep(path: Path, rows: Sequence[dict[str, Any]], *, at: str = "", done: bool = False) -> None:
    beside = path.with_suffix(".part")
    torch_version = torch.__version__.split("+")[0]
    versions = f"transformers {transformers.__version__} with torch {torch_version}"
    kept = {"done": done, "at": at, "versions": versions, "rows": list(rows)}
    beside.write_text(json.dumps(kept, indent=1))
    beside.replace(path)


def _read(path: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(path.read_text())
    return found


def _summary(found: dict[str, Any]) -> str:
    """What came of a family, in one line."""
    verdicts = Counter(each["row"]["verdict"] for each in found["rows"])
    methods = Counter(
        cell.split(":")[0] for each in found["rows"] for cell in (each["cells"] or {}).values()
    )
    shown = [f"{count} {verdict}" for verdict, count in verdicts.items()]
    shown += [f"{methods[kind]} {kind}" for kind in SIGNS if methods[kind]]
    return ", ".join(shown)
