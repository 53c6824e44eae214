"""Objectives, one file each: what a model is trained for beside its labels."""

from attlas.objectives.support.objective import OBJECTIVES, Objective, objective

__all__ = ["OBJECTIVES", "Objective", "objective"]
