"""Texts that are generated, with the truth known."""
