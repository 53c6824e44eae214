"""Asking: questions about a batch, and what the model answers: scores, attention, gradients."""
