"""Texts, by file or by name; nothing here knows of models."""

from attlas.data.example import Example
from attlas.data.tables import read_examples
from attlas.data.texts import texts

__all__ = ["Example", "read_examples", "texts"]
