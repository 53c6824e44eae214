"""The sections of a report on trials."""

from typing import Any

import numpy as np

from attlas.auditing.collected import TrialRun
from attlas.auditing.plan import AuditPlan
from attlas.auditing.verdict.verdict import as_figure
from attlas.mathematics.intervals import bootstrap_means
from attlas.results.support.report_sections import TrialFigure, TrialSection
from attlas.trials import TRIALS


def make_trial_section(run: TrialRun, plan: AuditPlan) -> TrialSection:
    """What a trial found, each figure with its interval; or why it could not be run."""
    if run.outcome is None:
        return TrialSection(run.name, str(run.scope), f"It could not be run: {run.reason}.", (), "")
    outcome, groups = run.outcome, plan.texts.groups
    own = None if groups is None else groups[list(outcome.texts)]
    columns = np.stack([*outcome.figures.values()], axis=1)
    means = bootstrap_means(columns.astype(np.float64), plan.settings.seed, own)
    figures = tuple(
        TrialFigure(name, as_figure(mean), _mean_ceiling(outcome.ceilings.get(name)))
        for name, mean in zip(outcome.figures, means, strict=True)
    )
    sentence = " ".join([outcome.sentence, *outcome.notes])
    limit = TRIALS[run.name].does_not_show
    return TrialSection(run.name, str(run.scope), sentence, figures, limit, tuple(outcome.plots))


def _mean_ceiling(ceiling: Any) -> float | None:
    if ceiling is None or np.isnan(ceiling).all():
        return None
    return float(np.nanmean(ceiling))
