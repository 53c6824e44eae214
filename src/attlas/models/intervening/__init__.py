"""Interventions beyond attention weights: head outputs, keys, heads and model weights."""
