"""Relevance: the backward pass changed by operation, so that it carries relevance to the input."""
