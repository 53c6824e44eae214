"""Texts with labels, read from files, from memory or by name; nothing here knows of models."""

from attlas.data.example import Example
from attlas.data.read_examples import ReadData, read_examples
from attlas.data.texts_by_name import texts

__all__ = ["Example", "ReadData", "read_examples", "texts"]
