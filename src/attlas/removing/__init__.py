"""Removing tokens from a text and asking the model again."""
