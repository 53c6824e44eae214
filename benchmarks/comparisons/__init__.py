"""Comparisons, one file each: `compare` times ours and a peer on the same work, row by row."""
