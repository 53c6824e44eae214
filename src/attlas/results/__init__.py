"""Frozen records of what was found: they know no model, show themselves, and can be saved."""

from attlas.results.curves import Curve, PruneCurve
from attlas.results.explanation import Explanation
from attlas.results.generation import Generation
from attlas.results.heads import HeadImportance
from attlas.results.judgement import Judgement
from attlas.results.maps import Maps, Site
from attlas.results.origin import Origin, TargetRecord
from attlas.results.redundancy import HeadRedundancy
from attlas.results.report import Report
from attlas.results.tree import Edge, Tree
from attlas.results.triggers import Trigger, Triggers

__all__ = [
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
    "Site",
    "TargetRecord",
    "Tree",
    "Trigger",
    "Triggers",
]
