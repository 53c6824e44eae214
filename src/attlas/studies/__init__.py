"""Studies: published experiments, run again on models and data of one's own."""
