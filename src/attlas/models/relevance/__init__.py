"""Relevance: backward passes with a rule for each operation that carry relevance to the input."""
