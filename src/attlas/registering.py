"""What the author of a part needs: decorators that register it, and what it takes and returns.

Attlas finds the parts of an installed package by its entry points, in the groups
`attlas.methods`, `attlas.measures`, `attlas.trials`, `attlas.objectives`, `attlas.rankings` and
`attlas.studies`. The name of an entry point is that of the function:
`my_method = "my_package.my_method:my_method"`.
"""

from attlas.heads.rankings import ranking
from attlas.measures.support.measure import Case, Occasion, measure
from attlas.methods.support.method import Scored, method
from attlas.models.asking.question import Question
from attlas.objectives.support.objective import objective
from attlas.objectives.support.step import TrainingStep
from attlas.removing.erasures import Outcomes, Ways
from attlas.studies.support.findings import Findings
from attlas.studies.support.run import Run
from attlas.studies.support.study import study
from attlas.trials.support.scope import Scope
from attlas.trials.support.trial import TrialOutcome, trial

__all__ = [
    "Case",
    "Findings",
    "Occasion",
    "Outcomes",
    "Question",
    "Run",
    "Scope",
    "Scored",
    "TrainingStep",
    "TrialOutcome",
    "Ways",
    "measure",
    "method",
    "objective",
    "ranking",
    "study",
    "trial",
]
