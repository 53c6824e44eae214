"""The scripts that trained the built-in models."""
