"""Trials that only read the model: attention, gradients, hidden states."""
