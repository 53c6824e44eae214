"""Trials that read the attention and compare it."""
