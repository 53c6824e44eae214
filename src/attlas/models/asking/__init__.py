"""Questions about a batch, and the answers of the model: scores, attention, gradients, readout."""
