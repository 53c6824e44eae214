"""Checks, one for each family of embedded models, of what their cards promise."""
