"""Embedded models: weights, the scripts that trained them, and checks of what cards promise."""
