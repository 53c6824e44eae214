"""Methods, one file each: a method takes a Question and returns a score for each token."""

from attlas.methods.support.method import FAMILIES, METHODS, Method, Scored

__all__ = ["FAMILIES", "METHODS", "Method", "Scored"]
