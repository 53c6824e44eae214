"""The tap: attention read and rewritten at its sites, while the model runs."""
