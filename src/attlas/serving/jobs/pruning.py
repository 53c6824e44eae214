"""The job that prunes: accuracy as heads are switched off, the least important first."""

from pathlib import Path
from typing import Any

from attlas.errors import UsageError
from attlas.heads.curves import prune_curve
from attlas.models.subject import Subject
from attlas.results.prune_curve import Curve
from attlas.serving.jobs.telling import Teller
from attlas.serving.requests import PruneJob

CONTROL = "random"
DRAWS = 3  # random orders, of which the mean is shown


def work_prune(subject: Subject, job: PruneJob, teller: Teller, _: Path) -> dict[str, Any]:
    """The order of the heads, and the accuracy without the first 0, 1, 2, … of them."""
    if job.data is None:
        raise UsageError("there are no texts for this model")
    heads = sum(site.heads for site in subject.sites)
    found = prune_curve(
        subject,
        job.data,
        by=list(dict.fromkeys([job.by, CONTROL])),
        count=job.count,
        seed=job.seed,
        draws=DRAWS,
        shares=[count / heads for count in range(heads + 1)],
        watch=teller.step,
    )
    importance = found.importances[0]
    kinds = {site.name: {"kind": site.kind, "layer": site.layer} for site in subject.sites}
    places = [(site.name, head) for site in subject.sites for head in range(site.heads)]
    means = dict(zip(places, importance.mean.tolist(), strict=True))
    return {
        "by": job.by,
        "data": job.data,
        "texts": found.examples,
        "heads": heads,
        "order": [
            {**kinds[name], "head": head, "importance": means[name, head]}
            for name, head in reversed(importance.order())
        ],
        "points": _points(found.curves[0]),
        "random": _points(found[CONTROL]),
        "notes": list(found.notes),
    }


def _points(curve: Curve) -> list[dict[str, int | float]]:
    return [
        {
            "heads": each.heads,
            "accuracy": each.accuracy.mean,
            "low": each.accuracy.low,
            "high": each.accuracy.high,
        }
        for each in curve.points
    ]
