"""Trials that search for another attention."""
