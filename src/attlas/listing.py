"""The names of all parts. Torch is imported for them only if other packages add parts."""

from importlib import import_module

from attlas.catalogue import HOMES, has_more, known_names


def list_methods() -> list[str]:
    """Return the names of all methods."""
    return _names("method")


def list_measures() -> list[str]:
    """Return the names of all measures."""
    return _names("measure")


def list_trials() -> list[str]:
    """Return the names of all trials."""
    return _names("trial")


def list_objectives() -> list[str]:
    """Return the names of all objectives."""
    return _names("objective")


def list_rankings() -> list[str]:
    """Return the names of all rankings of heads."""
    return _names("ranking")


def _names(kind: str) -> list[str]:
    if has_more(kind):
        import_module(HOMES[kind])  # its registry knows which of the added parts can be used
    return known_names(kind)
