"""Checks, one for each family of built-in models, of what their cards promise."""
