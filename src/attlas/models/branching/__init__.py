"""Branching: run many variants of the attention at some layer without repeating the layers below."""
