"""Attlas: open a transformer at its attention, explain it, and test the explanation.

The names below are the whole public surface. They are imported when first used, so that
`import attlas` costs nothing.
"""

import sys
from importlib import import_module
from typing import TYPE_CHECKING, Any

from attlas.version import __version__

if TYPE_CHECKING:
    from attlas import registering, scoring
    from attlas.auditing.audit import audit
    from attlas.auditing.single_trial import try_trial
    from attlas.auditing.verdict.rules import Rules
    from attlas.checking import check
    from attlas.data import Example, read_examples, texts
    from attlas.engine import Engine
    from attlas.errors import AttlasError
    from attlas.explaining.comparing import compare
    from attlas.explaining.elsewhere import from_elsewhere
    from attlas.explaining.explanations import attribute, explain
    from attlas.explaining.generations import explain_generation
    from attlas.explaining.writing_scores import explain_to
    from attlas.heads.curves import head_effectiveness, prune_curve
    from attlas.heads.importance import head_importance
    from attlas.heads.pruning import prune
    from attlas.heads.redundancy import head_redundancy
    from attlas.heads.tree import attribution_tree
    from attlas.heads.triggers import triggers
    from attlas.judging.judge import judge
    from attlas.listing import (
        list_measures,
        list_methods,
        list_objectives,
        list_rankings,
        list_trials,
    )
    from attlas.models.adapting import adapt
    from attlas.models.encoding.images import Objects
    from attlas.models.encoding.target import Target
    from attlas.models.load import load
    from attlas.models.subject import Subject
    from attlas.models.tap import edits
    from attlas.models.teaching.identifiable_layer import IdentifiableEncoderLayer
    from attlas.planning import plan
    from attlas.results import (
        CheckResult,
        Comparison,
        Explanation,
        Generation,
        HeadImportance,
        HeadRedundancy,
        Judgement,
        Maps,
        PruneCurve,
        Report,
        Site,
        StudyResult,
        Tree,
        TrialResult,
        Triggers,
        Verdict,
    )
    from attlas.studies import list_studies, study
    from attlas.training.objective_trainer import (
        ObjectiveTrainer,
        marked_features,
        with_objectives,
    )
    from attlas.training.records import Trained
    from attlas.training.train import train
    from attlas.trials import Scope

_HOMES = {
    "AttlasError": "errors",
    "CheckResult": "results",
    "Comparison": "results",
    "Engine": "engine",
    "Example": "data",
    "Explanation": "results",
    "Generation": "results",
    "HeadImportance": "results",
    "HeadRedundancy": "results",
    "IdentifiableEncoderLayer": "models.teaching.identifiable_layer",
    "Judgement": "results",
    "Maps": "results",
    "ObjectiveTrainer": "training.objective_trainer",
    "Objects": "models.encoding.images",
    "PruneCurve": "results",
    "Report": "results",
    "Rules": "auditing.verdict.rules",
    "Scope": "trials",
    "Site": "results",
    "StudyResult": "results",
    "Subject": "models.subject",
    "Target": "models.encoding.target",
    "Trained": "training.records",
    "Tree": "results",
    "TrialResult": "results",
    "Triggers": "results",
    "Verdict": "results",
    "adapt": "models.adapting",
    "attribute": "explaining.explanations",
    "attribution_tree": "heads.tree",
    "audit": "auditing.audit",
    "check": "checking",
    "compare": "explaining.comparing",
    "edits": "models.tap.edits",
    "explain": "explaining.explanations",
    "explain_generation": "explaining.generations",
    "explain_to": "explaining.writing_scores",
    "from_elsewhere": "explaining.elsewhere",
    "head_effectiveness": "heads.curves",
    "head_importance": "heads.importance",
    "head_redundancy": "heads.redundancy",
    "judge": "judging",
    "list_measures": "listing",
    "list_methods": "listing",
    "list_objectives": "listing",
    "list_rankings": "listing",
    "list_studies": "studies",
    "list_trials": "listing",
    "load": "models.load",
    "marked_features": "training.objective_trainer",
    "plan": "planning",
    "prune": "heads.pruning",
    "prune_curve": "heads.curves",
    "read_examples": "data",
    "registering": "registering",
    "scoring": "scoring",
    "study": "studies",
    "texts": "data",
    "train": "training.train",
    "triggers": "heads.triggers",
    "try_trial": "auditing.single_trial",
    "with_objectives": "training.objective_trainer",
}
_MODULES = {"edits", "registering", "scoring"}

__all__ = [
    "AttlasError",
    "CheckResult",
    "Comparison",
    "Engine",
    "Example",
    "Explanation",
    "Generation",
    "HeadImportance",
    "HeadRedundancy",
    "IdentifiableEncoderLayer",
    "Judgement",
    "Maps",
    "ObjectiveTrainer",
    "Objects",
    "PruneCurve",
    "Report",
    "Rules",
    "Scope",
    "Site",
    "StudyResult",
    "Subject",
    "Target",
    "Trained",
    "Tree",
    "TrialResult",
    "Triggers",
    "Verdict",
    "__version__",
    "adapt",
    "attribute",
    "attribution_tree",
    "audit",
    "check",
    "compare",
    "edits",
    "explain",
    "explain_generation",
    "explain_to",
    "from_elsewhere",
    "head_effectiveness",
    "head_importance",
    "head_redundancy",
    "judge",
    "list_measures",
    "list_methods",
    "list_objectives",
    "list_rankings",
    "list_studies",
    "list_trials",
    "load",
    "marked_features",
    "plan",
    "prune",
    "prune_curve",
    "read_examples",
    "registering",
    "scoring",
    "study",
    "texts",
    "train",
    "triggers",
    "try_trial",
    "with_objectives",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'attlas' has no attribute {name!r}")
    home = _imported(f"attlas.{_HOMES[name]}")
    return home if name in _MODULES else getattr(home, name)


def _imported(module: str) -> Any:
    """A module; the first one brings torch with it, which takes seconds and is shown."""
    if module in sys.modules:
        return sys.modules[module]
    from attlas.progress import watched

    with watched(None, "importing torch"):
        return import_module(module)


def __dir__() -> list[str]:
    return __all__
