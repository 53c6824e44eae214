"""Trials that rewrite attention and see what becomes of the answer."""
