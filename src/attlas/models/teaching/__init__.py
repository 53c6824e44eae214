"""Models that learn: passes in training mode whose attention is in the graph of the parameters."""
