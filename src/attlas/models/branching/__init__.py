"""Copies of the stream that start at a layer: many variants of the attention in one pass."""
