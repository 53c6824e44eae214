"""Trials that search for other attention, or train it."""
