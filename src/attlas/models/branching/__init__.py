"""Branching: run many variants of attention without repeating the layers below."""
