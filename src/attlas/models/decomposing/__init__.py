"""Decomposing: hidden states as sums of terms, one for each token."""
