"""Encoding: from a text or a picture to the batch that a model takes."""
