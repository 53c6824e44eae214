"""Judging: measures held to explanations, ours and those from elsewhere."""

from attlas.judging.judge import judge

__all__ = ["judge"]
