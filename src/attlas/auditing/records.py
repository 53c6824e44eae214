"""What audits found of a model, in short: kept where an explanation of that model finds it."""

import json
import os
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from attlas.errors import AttlasError
from attlas.models.facts.fingerprint import look
from attlas.models.subject import Subject
from attlas.progress import printable
from attlas.results.report import Report
from attlas.results.support.files import digest_of
from attlas.views import write_whole


@dataclass(frozen=True)
class AuditRecord:
    """How much of what matters each method found, on which texts, and where the report is."""

    data: str
    texts: int
    found: Mapping[str, tuple[float, float]]  # by method, from the least to the most
    page: str | None


def records_folder() -> Path:
    """Where audits leave their records: `ATTLAS_AUDITS`, or a folder of the user's cache."""
    cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(os.environ.get("ATTLAS_AUDITS") or Path(cache) / "attlas" / "audits")


def keep_record(report: Report, subject: Subject, page: Path | None) -> None:
    """Keep what an audit found, in place of what an earlier one of the same weights did."""
    bounds: dict[str, list[float]] = {}
    for each in report.standings:
        own = (each.figure.low, each.figure.value, each.figure.high)
        if each.family != "control":
            bounds.setdefault(each.method, []).extend(one for one in own if one is not None)
    found = {method: (min(own), max(own)) for method, own in bounds.items() if own}
    place = None if page is None else str(page.resolve())
    record = AuditRecord(report.data.name, report.data.texts, found, place)
    with suppress(OSError, AttlasError):  # a home that cannot be written to stops no audit
        path = _path(subject)
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, json.dumps(asdict(record), ensure_ascii=False))


def find_record(subject: Subject) -> AuditRecord | None:
    """What the last audit of a model with these weights found; None if there was none."""
    if not any(records_folder().glob(f"{_size(subject)}-*.json")):
        return None  # summing up all weights takes long for a large model
    try:
        text = _path(subject).read_text("utf-8")
        record: dict[str, Any] = json.loads(text)
        bounds = record["found"].items()
        found = {method: (float(low), float(high)) for method, (low, high) in bounds}
        page = None if record["page"] is None else printable(record["page"])
        return AuditRecord(printable(record["data"]), int(record["texts"]), found, page)
    except (OSError, ValueError, LookupError, TypeError, AttributeError, RecursionError):
        return None


def _path(subject: Subject) -> Path:
    return records_folder() / f"{_size(subject)}-{digest_of(look(subject))[:32]}.json"


def _size(subject: Subject) -> int:
    return sum(each.numel() for each in subject.model.parameters())
