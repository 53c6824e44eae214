"""Results: frozen records that hold no model, show themselves and can be saved."""

from attlas.results.check_result import CheckResult
from attlas.results.comparison import Comparison
from attlas.results.explanation import Explanation
from attlas.results.generation import Generation
from attlas.results.head_importance import HeadImportance
from attlas.results.head_redundancy import HeadRedundancy
from attlas.results.judgement import Judgement
from attlas.results.maps import Maps, Site
from attlas.results.prune_curve import Curve, PruneCurve
from attlas.results.report import Report
from attlas.results.study_result import Claim, ComparedRow, ComparedTable, StudyResult
from attlas.results.support.origin import Origin, TargetRecord
from attlas.results.support.result import Result
from attlas.results.support.verdict import Verdict
from attlas.results.tree import Edge, Tree
from attlas.results.trial_result import TrialResult
from attlas.results.triggers import Trigger, Triggers

__all__ = [
    "CheckResult",
    "Claim",
    "ComparedRow",
    "ComparedTable",
    "Comparison",
    "Curve",
    "Edge",
    "Explanation",
    "Generation",
    "HeadImportance",
    "HeadRedundancy",
    "Judgement",
    "Maps",
    "Origin",
    "PruneCurve",
    "Report",
    "Result",
    "Site",
    "StudyResult",
    "TargetRecord",
    "Tree",
    "TrialResult",
    "Trigger",
    "Triggers",
    "Verdict",
]
