"""The scripts that trained the models in the box."""
