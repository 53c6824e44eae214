"""Attention models that are no transformers, in classes that transformers saves and loads."""
