"""Trials that rewrite the attention and watch the answer."""
