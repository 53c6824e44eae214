"""Hidden states as sums, one term for each token."""
