"""Planning: the verb `plan`, which estimates what another verb would take before it runs."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from inspect import Parameter, signature
from typing import Any

import torch

from attlas.engine import LOCAL, Engine, engine_of
from attlas.engine.cluster import connected, share_of
from attlas.errors import UnknownNameError, UsageError
from attlas.explaining.plan import Plan, count
from attlas.planning.explaining import plan_explain, plan_explain_to, plan_generation
from attlas.planning.heads import (
    plan_curve,
    plan_effectiveness,
    plan_importance,
    plan_redundancy,
    plan_tree,
    plan_triggers,
)
from attlas.planning.testing import (
    plan_judge,
    plan_score,
    plan_study,
    plan_trial,
    plan_whole_audit,
)
from attlas.planning.training import plan_train

__all__ = ["PLANNERS", "plan"]

Planner = Callable[[Mapping[str, Any], Mapping[str, Any]], Plan]
PLANNERS: dict[str, Planner] = {  # by the name of the verb: its arguments, and options of a part
    "explain": plan_explain,
    "explain_to": plan_explain_to,
    "explain_generation": plan_generation,
    "head_importance": plan_importance,
    "prune_curve": plan_curve,
    "head_effectiveness": plan_effectiveness,
    "head_redundancy": plan_redundancy,
    "triggers": plan_triggers,
    "attribution_tree": plan_tree,
    "judge": plan_judge,
    "score": plan_score,
    "try_trial": plan_trial,
    "audit": plan_whole_audit,
    "study": plan_study,
    "train": plan_train,
}


def plan(verb: Callable[..., Any], *arguments: Any, **named: Any) -> Plan:
    """Estimate what a verb would take with these arguments: time, memory, passes of the model.

    The model is timed on a few passes over a short sentence; nothing is explained. Arguments that
    the verb would refuse are refused, and so is what cannot fit into memory.

    Args:
        verb: The function that would be called, such as `attlas.explain`.
        *arguments: Its arguments.
        **named: Its named arguments.

    Example:
        >>> found = attlas.plan(attlas.explain, subject, ["so good", "so dull"], "attattr")
        >>> print(found)
    """
    name = getattr(verb, "__name__", "")
    if name not in PLANNERS:
        raise UsageError(f"a plan is of one of {', '.join(PLANNERS)}, not of {name or repr(verb)}")
    parameters = signature(verb).parameters
    is_open = any(each.kind is Parameter.VAR_KEYWORD for each in parameters.values())
    for each in named:
        if each not in parameters and not is_open:
            raise UnknownNameError(f"argument of {name}", each, list(parameters))
    try:
        bound = signature(verb).bind(*arguments, **named)
    except TypeError as problem:
        raise UsageError(f"{name}: {problem}") from None
    bound.apply_defaults()
    given = dict(bound.arguments)
    options = given.pop("options", {}) if is_open else {}
    engine = engine_of(given.get("engine", LOCAL))
    with torch.inference_mode(False):
        return by_workers(PLANNERS[name](given, options), engine)


def by_workers(found: Plan, engine: Engine) -> Plan:
    """The plan if the workers of an engine share the work, each of them as fast as was measured."""
    if engine.is_alone:
        return found
    with connected(engine) as ray:
        share = share_of(ray, engine, found.device.split(":")[0])
    return replace(
        found,
        seconds=found.seconds / share.workers,
        most_seconds=found.most_seconds and found.most_seconds / share.workers,
        seconds_by_work={
            name: each / share.workers for name, each in found.seconds_by_work.items()
        },
        notes=(
            f"{count(share.workers, 'worker')} on Ray, if there are pieces for all; without their "
            "start",
            *found.notes,
        ),
    )
