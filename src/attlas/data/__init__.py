"""Texts, by file or by name; nothing here knows of models."""

from attlas.data.example import Example

__all__ = ["Example"]
