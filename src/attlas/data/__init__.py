"""Texts, by file or by name; nothing here knows of models."""

from attlas.data.example import Example
from attlas.data.texts import texts

__all__ = ["Example", "texts"]
