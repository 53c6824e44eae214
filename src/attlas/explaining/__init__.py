"""The verbs `explain` and `explain_generation`: texts, and what a model writes, explained."""

from attlas.explaining.explanations import attribute, explain, is_one_text
from attlas.explaining.generations import explain_generation
from attlas.explaining.order import DEFAULT_METHOD, list_methods

__all__ = [
    "DEFAULT_METHOD",
    "attribute",
    "explain",
    "explain_generation",
    "is_one_text",
    "list_methods",
]
