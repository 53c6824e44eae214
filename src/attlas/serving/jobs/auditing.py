"""The job that audits: a quick audit in a folder of its own, which goes on where it was stopped."""

from pathlib import Path
from typing import Any

from attlas.auditing.audit import audit
from attlas.auditing.folder import PAGE
from attlas.data import Example
from attlas.errors import UsageError
from attlas.models.subject import Subject
from attlas.serving.jobs.telling import Teller
from attlas.serving.requests import AuditJob


def work_audit(subject: Subject, job: AuditJob, teller: Teller, folder: Path) -> dict[str, Any]:
    """The verdict, and where the report is."""
    if job.texts is not None:
        data: Any = [
            Example(each.text if each.pair is None else (each.text, each.pair), each.label)
            for each in job.texts
        ]
    elif job.data is None:
        raise UsageError("there are no texts for this model")
    else:
        data = job.data
    report = audit(
        subject, data, quick=True, count=job.count, seed=job.seed, out=folder, watch=teller.step
    )
    return {
        "verdict": report.verdict.word,
        "sentence": report.verdict.sentence,
        "plain": report.verdict.plain,
        "report": f"/reports/{folder.name}",
        "texts": report.data.texts,
        "seconds": report.seconds,
        "table": [
            {
                "method": each.method,
                "family": each.family,
                "removal": each.removal,
                "standing": each.figure.value,
                "low": each.figure.low,
                "high": each.figure.high,
            }
            for each in report.standings
        ],
    }


def report_page(folder: Path) -> str | None:
    """The page of a finished audit; None if there is none."""
    page = folder / PAGE
    return page.read_text("utf-8") if page.is_file() else None
