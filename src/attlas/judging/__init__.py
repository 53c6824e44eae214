"""The verb `judge`: measures applied to explanations, from Attlas or from elsewhere."""

from attlas.judging.judge import judge

__all__ = ["judge"]
