"""The work of an audit, in items that depend on no other: batches of texts, trials, robustness."""
