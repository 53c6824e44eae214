"""Generators of texts for which it is known what decides the label."""
