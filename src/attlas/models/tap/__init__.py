"""The tap: read and rewrite attention at its sites while the model runs."""
