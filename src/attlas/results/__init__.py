"""Frozen records of what was found: they know no model, show themselves, and can be saved."""

from attlas.results.explanation import Explanation, TargetRecord
from attlas.results.maps import Maps, Site

__all__ = ["Explanation", "Maps", "Site", "TargetRecord"]
